"""Stand-ins for imports that an adapters table names: enough for a file to be imported, and for nothing else.

A stand-in can be imported from, called, subclassed, used as a decorator or a context, and marks with it do nothing.
Whatever needs a value from it fails there.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, Self


class _Stub:
    """Whatever a replaced module is asked for."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Stub(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], _Stub):
            return args[0]  # a decorator, or what one with arguments gave
        if self.__name__.endswith(("Request.Waitall", "Request.waitall")):  # of mpi4py, and these requests are real
            return [request.wait() for request in args[0]]
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()

    def __repr__(self) -> str:
        return f"<{self.__name__}, replaced as the adapters table asks>"


class StubModule(ModuleType):
    """A module that has whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Stub(f"{self.__name__}.{name}")


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of these names, and those below them, before anybody else does."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Answer for the names that are replaced."""
        if not self.replaces(fullname):
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def replaces(self, fullname: str) -> bool:
        """Whether a module is one of those that are replaced."""
        return any(fullname == name or fullname.startswith(f"{name}.") for name in self.names)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Make the stand-in."""
        return StubModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run."""


@contextlib.contextmanager
def replaced(names: Sequence[str]) -> Iterator[None]:
    """While a file is imported: what it asks for under these names, or below them, is a stand-in."""
    if not names:
        yield
        return
    finder = StubFinder(names)
    away = {name: module for name, module in sys.modules.items() if finder.replaces(name)}
    for name in away:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        with attributes_replaced(names):
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if finder.replaces(name)]:
            del sys.modules[name]
        sys.modules.update(away)


@contextlib.contextmanager
def attributes_replaced(names: Sequence[str]) -> Iterator[None]:
    """While a function runs: what it reaches through a package that is there, as in ``torch.cuda.nvtx.range_push``."""
    parents = [(sys.modules[parent], name) for parent, _, name in map(_split, names) if parent in sys.modules]
    before = [(parent, name, vars(parent).get(name)) for parent, name in parents]
    for parent, name in parents:
        setattr(parent, name, StubModule(f"{parent.__name__}.{name}"))
    try:
        yield
    finally:
        for parent, name, module in before:
            if module is None:
                delattr(parent, name)
            else:
                setattr(parent, name, module)


def _split(name: str) -> tuple[str, str, str]:
    return name.rpartition(".")
