"""The mutants: implementations with one fault each. They are read here, never imported.

A mutant is a module ``impls/mutants/NAME.py`` whose docstring names the fault in its first line and which says
``BREAKS = ("claim.id", ...)``. ``killed.json`` beside them records which mutant broke which claim, and in which case.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent / "impls" / "mutants"
KILLED = HOME / "killed.json"


class MutantError(ValueError):
    """A file among the mutants does not say which claims it breaks."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault, and the claims that it must break at least."""

    name: str
    spec: str
    fault: str
    breaks: tuple[str, ...]


def find(home: Path = HOME) -> list[Mutant]:
    """Every mutant, by name. Raises MutantError for a file without ``BREAKS`` or without a docstring."""
    files = sorted(path for path in home.glob("*.py") if not path.name.startswith("_"))
    return [_read(path) for path in files]


def digest(home: Path = HOME) -> str:
    """A fingerprint of the mutants' sources: when it changes, the kill table is of other mutants."""
    total = hashlib.sha256()
    for path in sorted(home.glob("*.py")):
        total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def write_killed(killed: Mapping[str, Mapping[str, str]], path: Path) -> None:
    """Write ``{claim: {mutant: case}}``, who broke what and in which case, with the digest of the mutants' sources."""
    table = {claim: dict(sorted(cases.items())) for claim, cases in sorted(killed.items())}
    text = json.dumps({"digest": digest(), "claims": table}, indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def killing_cases(path: Path) -> dict[tuple[str, str], str]:
    """By mutant and claim, the case that broke it in the last run that was written down; nothing without a table."""
    if not path.is_file():
        return {}
    claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
    return {(f"mutants/{name}", claim): case for claim, cases in claims.items() for name, case in cases.items()}


def _read(path: Path) -> Mutant:
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise MutantError(f"mutant {path.name}: line {error.lineno}: {error.msg}") from None
    breaks = next((_texts(node.value) for node in module.body if _assigns(node, "BREAKS")), ())  # type: ignore[attr-defined]
    fault = (ast.get_docstring(module) or "").partition("\n")[0]
    if not breaks or not fault:
        raise MutantError(
            f'mutant {path.name}: needs a docstring that names its fault and BREAKS = ("claim.id", ...) as plain text'
        )
    return Mutant(name=f"mutants/{path.stem}", spec=f"mutants/{path.stem}", fault=fault, breaks=breaks)


def _assigns(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _texts(node: ast.expr | None) -> tuple[str, ...]:
    items = node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
    texts = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return tuple(texts) if len(texts) == len(items) else ()
