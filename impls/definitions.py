"""What a name in an implementation is bound to: somebody else's code, a stub, or work that can be judged; and where."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

_LIBRARY = frozenset({"torch", "numpy", *sys.stdlib_module_names})  # what these define is nobody's hand-in
T = TypeVar("T")
_STUB_BYTES = 400  # of bytecode: ten times that of ``raise NotImplementedError("not yet")``


def _remembered(look: Callable[[Any], T]) -> Callable[[Any], T]:
    """Look once at each function and class: reading sources takes long, and forked processes inherit what was found."""
    known = functools.cache(look)

    @functools.wraps(look)
    def remembering(value: Any) -> T:
        is_plain = inspect.isfunction(value) or type(value) is type  # others may hash and compare as they like
        return known(value) if is_plain else look(value)

    return remembering


def is_library(value: Any) -> bool:
    """Whether torch or the standard library defined it: an import in the student's file, not a hand-in."""
    if isinstance(value, functools.partial):
        return False
    home = getattr(value, "__module__", None) if callable(value) else None
    return isinstance(value, ModuleType) or (isinstance(home, str) and home.partition(".")[0] in _LIBRARY)


@_remembered
def is_stub(value: Any) -> bool:
    """Whether a function, or a class's ``__init__``, is nothing but ``raise NotImplementedError``, ``...`` or pass."""
    if _is_longer_than_a_stub(value):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    node = tree.body[0]
    if isinstance(node, ast.ClassDef):
        init = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        inherits = any(not is_library(base) for base in value.__mro__[1:])
        return _is_empty(node.body) and not inherits if init is None else _only_refuses(init.body)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
        _is_empty(node.body) or _only_refuses(node.body)
    )


def _is_longer_than_a_stub(value: Any) -> bool:
    """Whether it is compiled to so much that its source, which takes much longer to read, need not be looked at."""
    body = vars(value).get("__init__") if inspect.isclass(value) else value
    return inspect.isfunction(body) and len(body.__code__.co_code) > _STUB_BYTES


def _is_empty(body: list[ast.stmt]) -> bool:
    return all(isinstance(n, ast.Pass) or (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)) for n in body)


def _only_refuses(body: list[ast.stmt]) -> bool:
    rest = [node for node in body if not _is_empty([node])]
    if not rest or not isinstance(rest[0], ast.Raise) or rest[0].exc is None:
        return False
    raised = rest[0].exc.func if isinstance(rest[0].exc, ast.Call) else rest[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def file_of(value: Any) -> str:
    """The file where it is defined, as ``file.`` before a name; empty when that is unknown."""
    where = place(value).removeprefix(" (").rpartition(".py:")[0]
    return f"{where}." if where else ""


@_remembered
def place(value: Any) -> str:
    """Where it is defined, as `` (file:line)``; empty when that is unknown."""
    try:
        target = inspect.unwrap(value.func if isinstance(value, functools.partial) else value)
        file, line = inspect.getsourcefile(target), _line(target)
    except (OSError, TypeError):
        return ""
    return f" ({Path(file).name}:{line})" if file else ""


def _line(target: Any) -> int:
    """Its first line; that of a class has to be looked for in its file."""
    return target.__code__.co_firstlineno if inspect.isfunction(target) else inspect.getsourcelines(target)[1]
