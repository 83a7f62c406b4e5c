"""From NAME or path to the files of an implementation, without importing them: what pytest may know of a hand-in.

Everything is read as text, so nothing a student wrote can run, hang or exit here.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import hashlib
import os
import warnings
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from impls.contract import ENTRIES

HOME = Path(__file__).parent
TORCH = "torch"  # what `--impl` calls the folder torch_native
_NOT_IMPLEMENTATIONS = frozenset({"template", "mutants", "torch_native", "__pycache__"})
_NOT_SOURCES = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"})
_KNOWN_NAMES = frozenset(spelling for entry in ENTRIES.values() for spelling in entry.spellings)
_SPECIAL_NAMES = frozenset({"adapters", "MANIFEST"})


class Kind(StrEnum):
    """Where an implementation comes from."""

    BUNDLED = "bundled"
    MUTANT = "mutant"
    YOURS = "yours"  # a folder made by `python -m impls new`
    FILE = "file"
    FOLDER = "folder"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """An implementation that was found and not imported."""

    name: str
    spec: str
    path: Path
    kind: Kind
    module: str  # its dotted name when it lies in `impls`, else empty
    candidates: tuple[Path, ...]  # the files that are imported, in order; names are looked for in them
    sha256: str  # of all its Python sources


class ImplementationError(ValueError):
    """`--impl` names something that cannot be checked; the text is one sentence for the user."""


class UnknownImplementation(ImplementationError):
    """Nothing of this name."""


class EmptyFolder(ImplementationError):
    """A folder without any Python module."""


class NotPython(ImplementationError):
    """A file that is not Python source."""


class ProvidesNothing(ImplementationError):
    """Python modules, but none that defines a name of the contract."""


class BrokenSyntax(ImplementationError):
    """A module that Python cannot compile."""


def locate(spec: str) -> Located:
    """The implementation that `spec` names: reference, torch, mutants/NAME, a folder of `impls`, or a path.

    Raises an `ImplementationError` whose text says what was asked for and what exists.
    """
    spec = spec.strip()
    dotted = spec.replace("mutants.", "mutants/", 1) if spec.startswith("mutants.") else spec.rstrip("/")
    name = dotted.removeprefix("mutants/")
    if dotted == f"mutants/{name}" and _is_mutant(HOME / "mutants" / f"{name}.py"):
        return _located(dotted, spec, HOME / "mutants" / f"{name}.py", Kind.MUTANT, f"impls.mutants.{name}")
    if dotted in bundled():
        folder = "torch_native" if dotted == TORCH else dotted
        kind = Kind.BUNDLED if dotted in (TORCH, "reference") else Kind.YOURS
        return _located(dotted, spec, HOME / folder, kind, f"impls.{folder}")
    path = Path(spec).expanduser()
    if not spec or not path.exists():
        raise UnknownImplementation(_unknown(spec, path))
    if path.is_dir():
        return _located(spec, spec, path.resolve(), Kind.FOLDER, _inside_impls(path))
    if path.suffix != ".py" or not path.is_file():
        raise NotPython(f"--impl={spec}: {path.name} is not a Python file; give a .py file or a folder with some.")
    return _located(spec, spec, path.resolve(), Kind.FILE, _inside_impls(path))


def bundled() -> list[str]:
    """Names of the implementations that lie in `impls`: reference, torch, and the user's own folders."""
    own = sorted(
        entry.name
        for entry in HOME.iterdir()
        if entry.is_dir() and entry.name.isidentifier() and entry.name not in {*_NOT_IMPLEMENTATIONS, "reference"}
    )
    return ["reference", TORCH, *own]


def mutants() -> list[str]:
    """Names of the mutants, each as ``mutants/NAME``."""
    return sorted(f"mutants/{path.stem}" for path in (HOME / "mutants").glob("*.py") if _is_mutant(path))


def _is_mutant(path: Path) -> bool:
    return not path.stem.startswith("_") and path.stem.isidentifier() and path.is_file()


def manifest_of(located: Located) -> dict[str, Any]:
    """The ``MANIFEST = {...}`` of its first file that has one, when that is a plain literal; else an empty one."""
    for path in located.candidates:
        for node in _parse(path, located.spec).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and _named(targets, "MANIFEST"):
                try:
                    manifest = ast.literal_eval(node.value)
                except ValueError:
                    continue  # computed: known only after the import
                return manifest if isinstance(manifest, dict) else {}
    return {}


def _located(name: str, spec: str, path: Path, kind: Kind, module: str) -> Located:
    candidates = (path,) if path.is_file() else tuple(_candidates(path, spec))
    if not any(_provides_something(candidate, spec) for candidate in candidates):
        raise ProvidesNothing(
            f"--impl={spec}: {path.name} defines none of the names that are checked, such as ring_allreduce or "
            'DataParallel. Rename, or map yours in a table: adapters = {"ring_allreduce": "my_name"}.'
        )
    return Located(
        name=name, spec=spec, path=path, kind=kind, module=module, candidates=candidates, sha256=_sha256(path)
    )


def _candidates(folder: Path, spec: str) -> Iterator[Path]:
    """``__init__.py``, then those files of the folder that define a name of the contract: others may be scripts."""
    modules = sorted(folder.glob("*.py"))
    if not modules:
        raise EmptyFolder(f"--impl={spec}: {folder} has no Python module. `python -m impls new NAME` makes one.")
    for path in sorted(modules, key=lambda path: not path.stem.startswith("_")):
        if path.stem == "__init__" or (
            not path.stem.startswith(("test_", "conftest", "setup", "__"))
            and _provides_something(path, spec, star=False)
        ):
            yield path


def _provides_something(path: Path, spec: str, star: bool = True) -> bool:
    names = set(_bound_names(_parse(path, spec).body))
    return bool(names & (_KNOWN_NAMES | _SPECIAL_NAMES)) or (star and "*" in names)


def _bound_names(body: list[ast.stmt]) -> Iterator[str]:
    """Names that the statements of a module bind, imports from torch left out."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.ImportFrom() if (node.module or "").partition(".")[0] != "torch":
                yield from (alias.asname or alias.name for alias in node.names)
            case ast.If() | ast.Try() | ast.With():
                yield from _bound_names([*node.body, *getattr(node, "orelse", [])])


def _parse(path: Path, spec: str) -> ast.Module:
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise BrokenSyntax(f"--impl={spec}: Python cannot read {place}: {error.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BrokenSyntax(f"--impl={spec}: Python cannot read {path}: {error or type(error).__name__}.") from None
    except OSError as error:
        raise NotPython(f"--impl={spec}: {path} cannot be read: {error.strerror}.") from None


def _named(targets: list[Any], name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _inside_impls(path: Path) -> str:
    """The dotted name of a path that lies in a folder of `impls`, else nothing."""
    path = path.resolve()
    if not path.is_relative_to(HOME) or path == HOME or path.parent == HOME:
        return f"impls.{path.name}" if path.parent == HOME and path.is_dir() else ""
    parts = path.relative_to(HOME.parent).with_suffix("").parts
    return ".".join(parts) if all(part.isidentifier() for part in parts) else ""


def _unknown(spec: str, path: Path) -> str:
    exists = bundled()
    everything = [*exists, *mutants()]
    if path.parent.is_dir() and (path.suffix == ".py" or len(path.parts) > 1):
        everything += [str(path.parent / entry.name) for entry in path.parent.iterdir()]
    near = _near_mutants(spec) if spec.startswith("mutants") else difflib.get_close_matches(spec, everything, n=1)
    guess = f" Did you mean {' or '.join(near)}?" if near else ""
    return (
        f"--impl={spec}: there is no implementation of this name and no such path.{guess} "
        f"There are {', '.join(exists)}, {len(mutants())} mutants (mutants/NAME), and any .py file or folder."
    )


def _near_mutants(spec: str) -> list[str]:
    """Up to five mutants whose names share most with what was asked for: whole stems count before letters."""
    stems = [word[:5] for word in spec.removeprefix("mutants").strip("/.").split("_") if len(word) > 2]
    shared = {name: sum(stem in name for stem in stems) for name in mutants()}
    by_stem = sorted((name for name, count in shared.items() if count), key=lambda name: -shared[name])
    return by_stem[:5] or difflib.get_close_matches(spec, mutants(), n=3, cutoff=0.5)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    root = path.parent if path.is_file() else path
    for source in [path] if path.is_file() else sorted(_sources(path)):
        digest.update(f"{source.relative_to(root)}\0".encode())
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NOT_SOURCES]
        yield from (Path(root, name) for name in files if name.endswith(".py") and Path(root, name).is_file())
