"""Statements of a file that will run when it is used: what is under a condition on them, and what is a script's own.

Knows Python's syntax trees and nothing of what is looked for in them.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

Tells = Callable[[ast.AST], bool]


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file that has been imported; what Python warns of in it is nobody's business here."""
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(path.read_bytes())


def unconditional(tree: ast.Module, excuses: Tells, is_let_by: Tells) -> Iterator[ast.AST]:
    """Every node of a file but those under a condition, or after a return, that `excuses`, and those that are let by.

    What a ``try`` can catch comes under its condition as well, and what is below ``if __name__ == "__main__"`` is not
    run when a file is imported.
    """
    yield from _body(tree.body, excuses, is_let_by)


def _body(body: list[ast.stmt], excuses: Tells, is_let_by: Tells) -> Iterator[ast.AST]:
    for statement in body:
        match statement:
            case ast.If() | ast.While() if excuses(statement.test) or _is_script(statement.test):
                if isinstance(statement.body[-1], ast.Return | ast.Raise):
                    return  # what follows is the other branch
            case ast.Assert() if excuses(statement.test):
                return
            case ast.Try() | ast.TryStar():
                yield from _body([*statement.orelse, *statement.finalbody], excuses, is_let_by)
            case _:
                yield from _node(statement, excuses, is_let_by)


def _node(node: ast.AST, excuses: Tells, is_let_by: Tells) -> Iterator[ast.AST]:
    if is_let_by(node) or (isinstance(node, ast.IfExp) and excuses(node.test)):
        return
    yield node
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield from _body(value, excuses, is_let_by)
        else:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _node(child, excuses, is_let_by)


def _is_script(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))
