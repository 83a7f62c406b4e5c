"""Lines of a hand-in that ask for cuda whatever the machine has: read from its text, before anything runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from impls.reading import parsed, unconditional

_DEVICE = re.compile(r"cuda(:\d*)?|nccl")
_ASKED_OF_THE_MODULE = frozenset(  # of torch.cuda: what fails where there is no device
    (
        *("set_device", "current_device", "device", "synchronize"),
        *("current_stream", "default_stream", "stream", "Stream", "Event"),
    )
)
_ONLY_TELL = frozenset(("startswith", "print", "format", "get", "info", "debug", "warn", "warning", "add_argument"))
_ASKS = frozenset(("is_available", "device_count", "is_initialized", "is_nccl_available", "is_cuda"))
MOST_TOLD = 4


def cuda_lines(paths: Sequence[Path]) -> list[str]:
    """The lines, as ``file.py:12: module.cuda()``."""
    found = []
    for path in paths:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        numbers = sorted({node.lineno for node in _requests(parsed(path))})
        found += [f"{path.name}:{number}: {lines[number - 1].strip()}" for number in numbers]
    return found


def warning(paths: Sequence[Path]) -> str:
    """A sentence for whoever is about to run them on a machine without cuda; empty where nothing asks for it."""
    found = cuda_lines(paths)
    if not found:
        return ""
    more = f"; and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
    told = "; ".join(found[:MOST_TOLD]) + more
    return (
        f"asks for cuda, which this machine does not have, in {told}. A run says refuses of what comes there; "
        f"--device-shim moves these requests to the CPU"
    )


def _requests(tree: ast.Module) -> Iterator[ast.expr]:
    flags = _flags(tree)
    for node in unconditional(tree, lambda test: _asks(test, flags), _requests_nothing):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _fails(node.func):
            yield node.func
        elif _names_it(node):
            assert isinstance(node, ast.Constant)
            yield node


def _fails(function: ast.Attribute) -> bool:
    """``x.cuda``, but not ``torch.cuda`` by itself; ``torch.cuda.set_device``."""
    owner = function.value
    if isinstance(owner, ast.Attribute) and owner.attr == "cuda":
        return function.attr in _ASKED_OF_THE_MODULE
    return function.attr == "cuda" and not (isinstance(owner, ast.Name) and owner.id == "torch")


def _requests_nothing(node: ast.AST) -> bool:
    """A text that is compared, a key, a docstring, or one that a person reads."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in _ONLY_TELL or name.endswith("Error")
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Compare) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant))


def _flags(tree: ast.Module) -> frozenset[str]:
    """Names that an answer about cuda was given to: ``use_cuda = torch.cuda.is_available()``."""
    found: frozenset[str] = frozenset()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _asks(node.value, found):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            found |= {target.attr for target in node.targets if isinstance(target, ast.Attribute)}
    return found


def _asks(test: ast.AST, flags: frozenset[str]) -> bool:
    """Whether an expression has to do with what there is: a question to torch, its answer, a comparison with a name."""
    return any(
        getattr(node, "attr", getattr(node, "id", "")) in _ASKS | flags
        or (isinstance(node, ast.Compare) and any(map(_names_it, ast.walk(node))))
        for node in ast.walk(test)
    )


def _names_it(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_DEVICE.fullmatch(node.value))
