"""Import an implementation, in a rank process, and find in it what the contract names.

`locate` (re-exported here) is for pytest's side and imports nothing; `load` runs the student's code: whatever an import
does (raise, hang, exit) it does here. Two students' files of the same name never meet: everything imported from an
implementation's folder belongs to that implementation and is in ``sys.modules`` only while it is the active one.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from impls.contract import BLOCKS, ENTRIES, Entry
from impls.definitions import is_library, is_stub, place
from impls.handover import NotProvided, arguments, cannot_be_called, takes, takes_any_keyword
from impls.locate import (
    BrokenSyntax,
    EmptyFolder,
    ImplementationError,
    Kind,
    Located,
    NotPython,
    ProvidesNothing,
    UnknownImplementation,
    locate,
    manifest_of,
)
from impls.workshop import Workshop

__all__ = [
    "BrokenSyntax",
    "EmptyFolder",
    "Implementation",
    "ImplementationError",
    "Kind",
    "Located",
    "NotProvided",
    "NotPython",
    "ProvidesNothing",
    "UnknownImplementation",
    "load",
    "locate",
    "manifest_of",
]


def load(spec: str) -> Implementation:
    """Import what `spec` names and return it. Raises `ImplementationError`, or whatever the import raises."""
    located = locate(spec)
    workshop = Workshop(located)
    workshop.activate()
    return Implementation(located, workshop.import_all(), workshop)


class Implementation:
    """What one implementation provides: callables of the contract by name, however they are spelled there."""

    def __init__(self, located: Located, modules: list[ModuleType], workshop: Workshop) -> None:
        self.located = located
        self.name = located.name
        self.path = located.path
        self.sha256 = located.sha256
        self.modules = modules
        self.manifest = _manifest(modules)
        self._workshop = workshop
        self._known: dict[str, _Found] = {}

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of which it provides anything."""
        return tuple(block for block in BLOCKS if self.provides(block))

    @property
    def deviates(self) -> Mapping[str, Any]:
        """Claim -> {reason, source} of the claims that its manifest declares not to hold."""
        return _table(self.manifest, "deviates")

    @property
    def refuses(self) -> Mapping[str, Any]:
        """Claim -> {reason, source} of the situations that its manifest declares to refuse."""
        return _table(self.manifest, "refuses")

    def provides(self, block: str) -> dict[str, str]:
        """The contract's names in `block` that are provided, each with its spelling and place in the implementation."""
        return {name: self._found(name).spelling for name in BLOCKS.get(block, ()) if self._found(name).reason is None}

    def missing(self, block: str) -> dict[str, str]:
        """The contract's names in `block` that are not provided, each with the reason."""
        reasons = {name: self._found(name).reason for name in BLOCKS.get(block, ())}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def get(self, name: str) -> Any:
        """The callable (or constant) provided for a name of the contract, None when there is none."""
        found = self._found(name)
        return found.value if found.reason is None else None

    def reason(self, name: str) -> str | None:
        """Why a name is not provided; None when it is."""
        return self._found(name).reason

    def remarks(self) -> list[str]:
        """What was meant to be provided and is not: misspelt or dangling adapters, parameters that nothing fills."""
        tables = [getattr(module, "adapters", {}) for module in self.modules] + [self.manifest.get("adapters", {})]
        keys = dict.fromkeys(str(key) for table in tables if isinstance(table, Mapping) for key in table)
        unknown = [_unknown_key(key) for key in keys if key not in ENTRIES]
        return [*unknown, *(found.reason for found in map(self._found, ENTRIES) if found.reason and found.was_meant)]

    def call(self, name: str, further: Mapping[str, Any] | None = None, **available: Any) -> Any:
        """Call what is provided for `name`; `available` are values under the contract's parameter names.

        `further` are values that it gets by name, too, or in its ``**kwargs``.

        Raises `NotProvided` when there is nothing, when a parameter cannot be filled, or when the implementation itself
        raises NotImplementedError.
        """
        found = self._found(name)
        if found.reason is not None:
            raise NotProvided(found.reason)
        rest = dict(further or {})
        args, kwargs = arguments(found.value, ENTRIES[name], available | rest)
        if takes_any_keyword(found.value):
            kwargs |= {key: value for key, value in rest.items() if not takes(found.value, key)}
        return self.invoke(found.value, *args, **kwargs)

    def invoke(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call anything of the implementation's; its own NotImplementedError becomes `NotProvided`."""
        self._workshop.activate()
        try:
            return target(*args, **kwargs)
        except NotImplementedError as error:
            if not self._is_own(_innermost_code(error)):
                raise
            name = getattr(target, "__name__", "it")
            raise NotProvided(f"{name} raises NotImplementedError: {error}".rstrip(": ")) from error

    def _is_own(self, code: CodeType) -> bool:
        root = self.path if self.path.is_dir() else self.path.parent
        return Path(code.co_filename).is_relative_to(root)

    def _found(self, name: str) -> _Found:
        if name not in self._known:  # sources are read for it: a rank looks for what it calls, and for nothing else
            self._known[name] = self._find(ENTRIES[name])
        return self._known[name]

    def _find(self, entry: Entry) -> _Found:
        for module in self.modules:
            adapter = getattr(module, "adapters", self.manifest.get("adapters", {}))
            if isinstance(adapter, Mapping) and entry.name in adapter:
                return self._adapted(module, adapter[entry.name], entry)
        for spelling, module in itertools.product(entry.spellings, self.modules):
            value = getattr(module, spelling, None)
            if value is not None and not is_library(value) and (callable(value) or not entry.orders):
                return self._described(value, spelling, entry)
        return _Found(None, "", f"{self.name} has no {entry.name}")

    def _adapted(self, module: ModuleType, adapter: Any, entry: Entry) -> _Found:
        if not isinstance(adapter, str):
            return self._described(adapter, getattr(adapter, "__name__", entry.name), entry)
        for home in (module, *self.modules):
            value: Any = home
            for part in adapter.split("."):
                value = getattr(value, part, None)
            if value is not None:
                return self._described(value, adapter, entry)
        reason = f"the adapters table maps {entry.name} to {adapter!r}, which is not defined"
        return _Found(None, "", reason, was_meant=True)

    def _described(self, value: Any, spelling: str, entry: Entry) -> _Found:
        if entry.orders and not callable(value):
            return _Found(None, "", f"{spelling} is {type(value).__name__}, which cannot be called")
        reason = f"{spelling} is still empty" if entry.orders and is_stub(value) else None
        refusal = cannot_be_called(value, entry) if entry.orders and reason is None else None
        return _Found(value, f"{spelling}{place(value)}", reason or refusal, was_meant=refusal is not None)


class _Found:
    """What a look-up gave: a value with its spelling, or the reason why there is none."""

    __slots__ = ("reason", "spelling", "value", "was_meant")

    def __init__(self, value: Any, spelling: str, reason: str | None, was_meant: bool = False) -> None:
        self.value = value
        self.spelling = spelling
        self.reason = reason
        self.was_meant = was_meant  # the reason is news to whoever wrote it


def _unknown_key(key: str) -> str:
    """A key of an adapters table that the suite does not look for: a spelling of a name that it does, or a slip."""
    owner = next((entry.name for entry in ENTRIES.values() if key in entry.aliases), None)
    near = [owner] if owner else difflib.get_close_matches(key, list(ENTRIES), n=1, cutoff=0.4)
    meant = f": did you mean {near[0]!r}?" if near else "; the names are those in impls/contract/"
    return f"the adapters table has {key!r}, which is no name of the contract{meant}"


def _manifest(modules: list[ModuleType]) -> dict[str, Any]:
    for module in modules:
        manifest = getattr(module, "MANIFEST", None)
        if isinstance(manifest, Mapping):
            return dict(manifest)
    return {}


def _table(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = manifest.get(key, {})
    return table if isinstance(table, Mapping) else {}


def _innermost_code(error: BaseException) -> CodeType:
    traceback = error.__traceback__
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code
