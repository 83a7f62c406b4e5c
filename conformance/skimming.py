"""What a file of checks is about, from its text alone: importing one is slow, and most runs are about a few of them."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection, Iterator
from pathlib import Path

_HOME = Path(__file__).resolve().parent
_SCENARIO = "scenario("  # what a file with a failure mode has
_CALLED = re.compile(r"\bclaim\(\s*([^\s,()]*)")  # what stands first in claim(...)
_TEXT = re.compile(r'"([^"{}]+)"$')
_TEST = re.compile(r"^def (test_\w+)", re.MULTILINE)
_CONSTANT = re.compile(r'^(\w+) = "([^"]+)"$', re.MULTILINE)


def is_beside(path: Path, claims: Collection[str] | None, *, is_scenario: bool) -> bool:
    """Whether a file of checks has none of these claims (None: any will do), or no failure mode where one is asked for.

    A file that cannot be judged by its text, as a claim of it is named elsewhere, is no such file.
    """
    if path.suffix != ".py" or not path.name.startswith("test_"):
        return False
    text = path.read_text(encoding="utf-8")
    if is_scenario and _SCENARIO not in text:
        return True
    if claims is None:
        return False
    constants = dict(_CONSTANT.findall(text))
    named = [constants.get(first) or _literal(first) for first in _CALLED.findall(text)]
    return bool(named) and not any(claim is None or claim in claims for claim in named)


def _literal(source: str) -> str | None:
    found = _TEXT.match(source)
    return found.group(1) if found else None


@functools.cache
def functions(places: tuple[Path, ...]) -> frozenset[str]:
    """The names of the tests in these files, and in all files of these folders."""
    files = {file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))}
    return frozenset(name for file in files for name in _TEST.findall(file.read_text(encoding="utf-8")))


def checked_claims(home: Path = _HOME) -> frozenset[str]:
    """The claims for which there is any check at all, read from the sources: a run may collect only some."""
    return frozenset(claim for path in home.glob("*/*.py") for claim in _named_in(path))


def _named_in(path: Path) -> Iterator[str]:
    """The ids in ``claim(...)`` and ``claim_id=...``: texts, or constants of the module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = _constants(tree)
    for node in ast.walk(tree):
        for value in _ids_in(node) if isinstance(node, ast.Call) else ():
            found = constants.get(value.id) if isinstance(value, ast.Name) else value
            if isinstance(found, ast.Constant) and isinstance(found.value, str):
                yield found.value


def _ids_in(call: ast.Call) -> list[ast.expr]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    ids = [keyword.value for keyword in call.keywords if keyword.arg == "claim_id"]
    return [*ids, *(call.args[:1] if called == "claim" else [])]


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return {target.id: node.value for node in assigned for target in node.targets if isinstance(target, ast.Name)}
