"""Packages that a hand-in asks for and this machine lacks, where that comes up only when a function is called."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from impls.reading import parsed, unconditional

_ABOUT_IMPORTS = frozenset({"TYPE_CHECKING", "find_spec", "is_available"})


def ways_out(name: str) -> str:
    """What can be done about a package that is not there."""
    return (
        f"Install {name}; or, where nothing that is checked needs it, have it replaced: "
        f'adapters = {{"stub": ["{name}"]}} in the module, or adapters.stub = ["{name}"] in a file for --adapters=FILE.'
    )


def warnings(paths: Sequence[Path], replaced: Sequence[str]) -> Iterator[str]:
    """A sentence for each package that a call would ask for in vain; the folder of the files is on ``sys.path``."""
    places: dict[str, str] = {}
    for path in paths:
        for name, line in _imports(parsed(path)):
            if name not in replaced:
                places.setdefault(name, f"{path.name}:{line}")
    for name, place in places.items():
        if not is_there(name):
            yield f"{place} imports {name}, which is not installed here: what comes there crashes. {ways_out(name)}"


def explain(error: ModuleNotFoundError, own: Path) -> None:
    """Say in an exception that a call raised what can be done about it; its own package is not to be replaced."""
    name = (error.name or "").partition(".")[0]
    if name and name not in own.parts and not is_there(name) and ways_out(name) not in str(error):
        error.msg = f"{error}. {ways_out(name)}"


def is_there(name: str) -> bool:
    """Whether a package can be imported, without importing it."""
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The packages that a file asks for, each with its line, but for what a condition or a ``try`` takes care of."""
    for node in unconditional(tree, _is_about_imports, lambda _: False):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], node.lineno


def _is_about_imports(test: ast.AST) -> bool:
    return any(getattr(node, "attr", getattr(node, "id", "")) in _ABOUT_IMPORTS for node in ast.walk(test))
