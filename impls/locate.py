"""From NAME or path to the files of an implementation, without importing them: what pytest may know of a hand-in.

Everything is read as text, so nothing a student wrote can run, hang or exit here.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import hashlib
import os
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from impls import notebooks
from impls.contract import ENTRIES
from impls.contract.names import COMMUNICATORS, WRAPPER_METHODS
from impls.contract.patterns import entries_of
from impls.spec import Spec
from impls.table import STUB, BadTable, names_in, read_file, stubs_in

HOME = Path(__file__).parent
TORCH = "torch"  # what `--impl` calls the folder torch_native
_NOT_IMPLEMENTATIONS = frozenset({"template", "mutants", "torch_native", "__pycache__"})
_NOT_SOURCES = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"})
_OWNERS = {spelling: entry.name for entry in ENTRIES.values() for spelling in entry.spellings}
_COLLECTIVES = frozenset(spelling for spelling, name in _OWNERS.items() if ENTRIES[name].block == "collectives")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_EXIT = re.compile(r"(sys\.exit|os\._exit|exit|quit|raise SystemExit)\b")
_MOST_TOLD = 4  # names or files in one sentence
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
    sha256: str  # of all its Python sources, and of the table beside it
    asked: Spec
    adapters: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the file that was named beside it
    stubs: tuple[str, ...] = ()  # imports that are replaced


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


class UnusableTable(ImplementationError):
    """A file of adapters that cannot be used."""


def locate(spec: str) -> Located:
    """The implementation that `spec` names: reference, torch, mutants/NAME, a folder of `impls`, or a path.

    What may stand after it is said in `impls.spec`. Raises an `ImplementationError` whose text says what was asked for
    and what exists.
    """
    asked = Spec.parse(spec)
    try:
        adapters = read_file(asked.adapters) if asked.adapters else {}
    except BadTable as error:
        raise UnusableTable(str(error)) from None
    found = _locate(asked.where, bool(adapters) or bool(asked.only))
    if asked == found.asked:
        return found
    trees = [_parse(path, spec) for path in found.candidates]
    if asked.only:
        _assert_defines(asked, trees)
    table = hashlib.sha256(repr(sorted(adapters.items())).encode()).hexdigest() if adapters else ""
    return dataclasses.replace(
        found,
        name=asked.label,
        spec=str(asked),
        sha256=hashlib.sha256((found.sha256 + table).encode()).hexdigest() if table else found.sha256,
        asked=asked,
        adapters=adapters,
        stubs=tuple(dict.fromkeys([*found.stubs, *names_in(adapters.get(STUB))])),
    )


def _locate(spec: str, anything: bool) -> Located:
    dotted = spec.replace("mutants.", "mutants/", 1) if spec.startswith("mutants.") else spec.rstrip("/")
    name = dotted.removeprefix("mutants/")
    if dotted == f"mutants/{name}" and _is_mutant(HOME / "mutants" / f"{name}.py"):
        return _located(dotted, spec, HOME / "mutants" / f"{name}.py", Kind.MUTANT, f"impls.mutants.{name}")
    if dotted in bundled():
        folder = "torch_native" if dotted == TORCH else dotted
        kind = Kind.BUNDLED if dotted in (TORCH, "reference") else Kind.YOURS
        return _located(dotted, spec, HOME / folder, kind, f"impls.{folder}")
    path = Path(spec).expanduser()
    if spec and (why := _unreachable(path)):
        raise UnknownImplementation(f"--impl={spec}: {path} {why}.")
    if not spec or not path.exists():
        raise UnknownImplementation(_unknown(spec, path))
    if path.is_dir():
        return _located(spec, spec, path.resolve(), Kind.FOLDER, _inside_impls(path), anything)
    if path.suffix == ".ipynb":
        made = f"{notebooks.export(shlex.quote(spec))}, then give {shlex.quote(str(Path(spec).with_suffix('.py')))}"
        raise NotPython(f"--impl={spec}: {path.name} is a notebook, which is not read: {made}.")
    if path.suffix != ".py" or not path.is_file():
        raise NotPython(f"--impl={spec}: {path.name} is not a Python file; give a .py file or a folder with some.")
    return _located(spec, spec, path.resolve(), Kind.FILE, _inside_impls(path), anything)


def _unreachable(path: Path) -> str:
    """Why what is there cannot be looked at; empty where it can, and where there is nothing."""
    try:
        if path.is_symlink() and not path.exists():
            return "is a link that leads to nothing, or in a circle"
        is_closed = path.is_dir() and not os.access(path, os.R_OK | os.X_OK)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "cannot be read: Permission denied" if is_closed else ""


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


def _assert_defines(asked: Spec, trees: list[ast.Module]) -> None:
    """The name that was asked for is there, and stands for something."""
    entry, _, name = asked.only.rpartition("=")
    defined = dict(pair for tree in trees for pair in _bound_names(tree.body))
    if name.partition(".")[0] not in defined:
        near = difflib.get_close_matches(name, defined, n=1, cutoff=0.4)
        meant = f" Did you mean {near[0]!r}?" if near else f" It defines {', '.join(sorted(defined)) or 'nothing'}."
        raise UnknownImplementation(f"--impl={asked.label}: {asked.where} does not define {name!r}.{meant}")
    if entry and entry not in ENTRIES:
        near = difflib.get_close_matches(entry, list(ENTRIES), n=1, cutoff=0.4)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise UnknownImplementation(f"--impl={asked.label}: {entry!r} is no name of the contract.{meant}")
    if not entry and not entries_for(name, defined[name.partition(".")[0]]):
        raise UnknownImplementation(
            f"--impl={asked.label}: nothing in the name {name!r} says what it is. Say which name of the contract it "
            f"stands for, as in --impl={asked.where}:DataParallel={name}"
        )


def entries_for(name: str, node: ast.stmt | None = None) -> list[str]:
    """The names of the contract that a definition of this name may stand for, as far as its text tells."""
    if (listed := _OWNERS.get(name)) is not None:
        return [listed]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return []  # a variable is taken by a listed name only
    is_class = isinstance(node, ast.ClassDef) if isinstance(node, _DEFINITIONS) else None
    found = entries_of(name, is_class)
    if isinstance(node, ast.ClassDef):
        methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        found += [entry for entry, names in WRAPPER_METHODS.items() if methods & set(names)]
        if COMMUNICATORS.search(name):
            found += collectives_in(sorted(methods))
    return found


def collectives_in(methods: Sequence[str]) -> dict[str, list[str]]:
    """The collectives among a class's methods: by name of the contract, the methods that may stand for it.

    As with functions, the contract's own name goes before those of the lists, and these before names by their parts:
    ``all_reduce``, ``my_all_reduce``, then mpi4py's ``Allreduce`` or ``myAllreduce``.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    for method in methods:
        listed = _OWNERS.get(method) if method in _COLLECTIVES else None
        for entry in [listed] if listed else entries_of(method, is_class=False):
            if ENTRIES[entry].block == "collectives":
                rank = 0 if method == entry else 1 if listed else 2
                found.setdefault(entry, []).append((rank, method))
    return {entry: [method for rank, method in ranked if rank == min(ranked)[0]] for entry, ranked in found.items()}


def definitions(path: Path, name: str) -> list[ast.stmt]:
    """The statements of a file that bind a name."""
    return [node for found, node in _bound_names(_parse(path, str(path)).body) if found == name]


def _located(name: str, spec: str, path: Path, kind: Kind, module: str, anything: bool = False) -> Located:
    candidates = (path,) if path.is_file() else tuple(_candidates(path, spec, anything))
    if not anything and not any(_provides_something(candidate, spec) for candidate in candidates):
        raise ProvidesNothing(
            f"--impl={spec}: {path.name} defines none of the names that are checked, such as ring_allreduce or "
            'DataParallel. Rename, or map yours in a table: adapters = {"ring_allreduce": "my_name"}.'
            f"{_what_it_has(candidates, spec)}{_ends(candidates, spec)}{_below(path, spec)}"
        )
    own = kind in (Kind.FILE, Kind.FOLDER, Kind.YOURS)
    return Located(
        name=name,
        spec=spec,
        path=path,
        kind=kind,
        module=module,
        candidates=candidates,
        sha256=_sha256(path),
        asked=Spec(where=spec),
        stubs=stubs_in([_parse(candidate, spec) for candidate in candidates]) if own else (),
    )


def _candidates(folder: Path, spec: str, anything: bool = False) -> Iterator[Path]:
    """``__init__.py``, then those files of the folder that define a name of the contract: others may be scripts."""
    modules = sorted(folder.glob("*.py"))
    if not modules:
        made = " `python -m impls new NAME` makes one."
        if notebook := next(folder.glob("*.ipynb"), None):
            made = f" It has a notebook, which is not read: {notebooks.export(shlex.quote(str(notebook)))}."
        raise EmptyFolder(f"--impl={spec}: {folder} has no Python module.{_below(folder, spec) or made}")
    for path in sorted(modules, key=lambda path: not path.stem.startswith("_")):
        if path.stem == "__init__" or (
            not path.stem.startswith(("test_", "conftest", "setup", "__"))
            and (anything or _provides_something(path, spec, star=False))
        ):
            yield path


def _provides_something(path: Path, spec: str, star: bool = True) -> bool:
    names = dict(_bound_names(_parse(path, spec).body))
    if names.keys() & _SPECIAL_NAMES or (star and "*" in names):
        return True
    return any(entries_for(name, node) for name, node in names.items())


def _what_it_has(candidates: Sequence[Path], spec: str) -> str:
    """What could be named in a table: the public definitions of these files, the first of them."""
    nodes = [node for path in candidates for node in _parse(path, spec).body if isinstance(node, _DEFINITIONS)]
    names = [node.name for node in nodes if not node.name.startswith("_")]
    more = f" and {len(names) - _MOST_TOLD} more" if len(names) > _MOST_TOLD else ""
    return f" It has {', '.join(names[:_MOST_TOLD])}{more}." if names else ""


def _ends(candidates: Sequence[Path], spec: str) -> str:
    """Where the text of a file ends the process as it is imported: nothing below that line would be there."""
    found = [
        f" {path.name}:{node.lineno} ends the process when the file is imported (SystemExit): what stands at the level "
        'of the module belongs under if __name__ == "__main__".'
        for path in candidates
        for node in _parse(path, spec).body
        if isinstance(node, ast.Expr | ast.Raise) and _EXIT.match(ast.unparse(node))
    ]
    return "".join(found[:1])


def _below(folder: Path, spec: str) -> str:
    """The files deeper in a folder that could be asked for by themselves: a package inside of a repository."""
    if not folder.is_dir():
        return ""
    deeper = [path for path in sorted(_sources(folder)) if path.parent != folder and _can_be_asked_for(path, spec)]
    if not deeper:
        return ""
    more = f", or one of {len(deeper) - _MOST_TOLD} more" if len(deeper) > _MOST_TOLD else ""
    told = " or ".join(shlex.quote(f"--impl={Path(spec) / path.relative_to(folder)}") for path in deeper[:_MOST_TOLD])
    return f" Below it there is what can be checked: {told}{more}."


def _can_be_asked_for(path: Path, spec: str) -> bool:
    try:
        return not path.stem.startswith(("test_", "conftest", "setup")) and _provides_something(path, spec, star=False)
    except ImplementationError:  # cannot be read: no advice
        return False


def _bound_names(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names that the statements of a module bind, each with its statement; imports from torch left out."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))
            case ast.ImportFrom() if (node.module or "").partition(".")[0] != "torch":
                yield from ((alias.asname or alias.name, node) for alias in node.names)
            case ast.If() | ast.Try() | ast.With():
                yield from _bound_names([*node.body, *getattr(node, "orelse", [])])


def _parse(path: Path, spec: str) -> ast.Module:
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        told = f" {notebooks.left_in(path)}" if notebooks.is_only_there(error.text or "") else ""
        raise BrokenSyntax(f"--impl={spec}: Python cannot read {place}: {error.msg}.{told}") from None
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
