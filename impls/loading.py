"""Import an implementation, in a rank process, and find in it what the contract names.

`locate` (re-exported here) is for pytest's side and imports nothing; `load` runs the student's code: whatever an import
does (raise, hang, exit) it does here. Two students' files of the same name never meet: everything imported from an
implementation's folder belongs to that implementation and is in ``sys.modules`` only while it is the active one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import torch
import torch.distributed as dist

from impls import absent, cuda_lines
from impls.arrays import as_array, as_tensor, knows_arrays_only
from impls.candidates import Candidate, borrowed, choose, exact_names
from impls.communicator import member
from impls.contract import BLOCKS, ENTRIES, Entry
from impls.contract.methods import STATE_FUNCTIONS
from impls.definitions import is_library, is_stub, place
from impls.devices import NoSuchDevice, without_cuda
from impls.handover import NotProvided, arguments, bindings, takes, takes_any_keyword
from impls.locate import (
    BrokenSyntax,
    EmptyFolder,
    ImplementationError,
    Kind,
    Located,
    NotPython,
    ProvidesNothing,
    UnknownImplementation,
    definitions,
    entries_for,
    locate,
    manifest_of,
)
from impls.neighbours import NAMES, neighbours
from impls.proposals import proposals
from impls.stubs import attributes_replaced
from impls.table import INITIALIZE, MEAN, OP, SPECIAL, unknown_key
from impls.unfit import unfit
from impls.workshop import Workshop

__all__ = [
    "BrokenSyntax",
    "EmptyFolder",
    "Implementation",
    "ImplementationError",
    "Kind",
    "Located",
    "NoSuchDevice",
    "NotProvided",
    "NotPython",
    "ProvidesNothing",
    "UnknownImplementation",
    "load",
    "locate",
    "manifest_of",
]

_HAND_INS = (Kind.FILE, Kind.FOLDER, Kind.YOURS)
_EACH_BY_ITSELF = frozenset({"train_step"})  # a check asks for each schedule's own


def load(spec: str) -> Implementation:
    """Import what `spec` names and return it. Raises `ImplementationError`, or whatever the import raises."""
    located = locate(spec)
    workshop = Workshop(located)
    workshop.activate()
    with without_cuda(located.path):
        return Implementation(located, workshop.import_all(), workshop)


def read_ahead() -> None:
    """Look at all that the reference provides: what is forked from this process need not read those sources again."""
    reference = load("reference")
    for name in ENTRIES:
        reference.reason(name)


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
        self._only: list[str] | None = None
        self._links: tuple[Any, dict[str, Any]] | None = None  # a mesh, and the same as queues and pipes
        self._state_of: Any = None  # the process group for which its modules' global state was set

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
        """What was meant to be provided and is not, and what was taken otherwise than its author may think."""
        keys = dict.fromkeys(str(key) for table in self._tables() for key in table)
        unknown = [unknown_key(key) for key in keys if key not in ENTRIES and key not in SPECIAL]
        meant = [found.reason for found in map(self._found, ENTRIES) if found.reason and found.was_meant]
        return [*unknown, *meant, *self._notes()]

    def _notes(self) -> list[str]:
        """What else was done so that it can be examined: nothing of it is done unasked or unsaid."""
        stubs = self.located.stubs
        told = [f"replaced by stubs, as the adapters table asks: {', '.join(stubs)}"] if stubs else []
        told += self._workshop.skipped
        told += ["requests for cuda are moved to the CPU (--device-shim)"] if self.located.asked.device_shim else []
        told += self._asks_in_vain()
        told += ['the all-reduces are taken to average (op = "mean")'] if self.averages else []
        return [*told, *(found.note for found in map(self._found, ENTRIES) if found.note)]

    def _asks_in_vain(self) -> list[str]:
        """What its text asks for and this machine does not have, though it could be imported."""
        if self.located.kind not in _HAND_INS:
            return []
        self._workshop.activate()
        paths = self.located.candidates
        told = "" if self.located.asked.device_shim or torch.cuda.is_available() else cuda_lines.warning(paths)
        return [*([told] if told else []), *absent.warnings(paths, self.located.stubs)]

    @property
    def averages(self) -> bool:
        """Whether the table says that its all-reduces give the mean."""
        return bool(self._special(OP) == MEAN)

    @property
    def has_left_out(self) -> bool:
        """Whether an ``__init__.py`` above it failed, and was left out."""
        return bool(self._workshop.skipped)

    @property
    def state_function(self) -> Callable[..., Any] | None:
        """What is called before anything else: what the table names, or one of `STATE_FUNCTIONS`."""
        asked = self._special(INITIALIZE)
        names = STATE_FUNCTIONS if asked is None else (str(asked),)
        found = [getattr(home, name, None) for name in names for home in self.modules]
        return next((each for each in found if callable(each) and not is_library(each) and not is_stub(each)), None)

    def _special(self, key: str) -> Any:
        return next((table[key] for table in self._tables() if key in table), None)

    def _tables(self) -> list[Mapping[str, Any]]:
        """The tables of adapters, the one that goes before the others first."""
        own = [getattr(module, "adapters", {}) for module in self.modules]
        tables = [self.located.adapters, *own, self.manifest.get("adapters", {})]
        return [table for table in tables if isinstance(table, Mapping)]

    def bindings(self, name: str) -> dict[str, str]:
        """What the parameters of what is provided for a name are handed."""
        return bindings(self._found(name).value, ENTRIES[name]) if ENTRIES[name].orders else {}

    def proposals(self) -> dict[str, list[str]]:
        """What is there and was taken for nothing, with the names of the contract that it may stand for."""
        taken = [found.value for found in map(self._found, ENTRIES) if found.value is not None]
        rivals = [rival.value for name in ENTRIES for rival in self._found(name).rivals]
        return proposals(self.modules, [*taken, *rivals])

    def rivals(self) -> dict[str, list[str]]:
        """Names of the contract for which several could be meant, with what could."""
        return {name: exact_names(found.rivals) for name in ENTRIES if (found := self._found(name)).rivals}

    def why(self, name: str) -> str:
        """Why what is provided for a name of the contract was taken for it."""
        return self._found(name).why

    def call(self, name: str, further: Mapping[str, Any] | None = None, /, **available: Any) -> Any:
        """Call what is provided for `name`; `available` are values under the contract's parameter names.

        `further` are values that it gets by name, too, or in its ``**kwargs``.

        Raises `NotProvided` when there is nothing, when a parameter cannot be filled, or when the implementation itself
        raises NotImplementedError.
        """
        found = self._found(name)
        if found.reason is not None:
            raise NotProvided(found.reason)
        self._set_state()
        rest = dict(further or {})
        if any(takes(found.value, key) for key in NAMES) and (mesh := available.get("mesh")) is not None:
            available |= self._neighbours(mesh)
        args, kwargs = arguments(found.value, ENTRIES[name], available | rest)
        if takes_any_keyword(found.value):
            kwargs |= {key: value for key, value in rest.items() if not takes(found.value, key)}
        if ENTRIES[name].block == "collectives" and knows_arrays_only(found.value):
            given = {key: as_array(value) for key, value in kwargs.items()}
            return as_tensor(self.invoke(found.value, *map(as_array, args), **given))
        return self.invoke(found.value, *args, **kwargs)

    def _neighbours(self, mesh: Any) -> dict[str, Any]:
        """The mesh as queues and pipes: made once for a mesh, as what is sent to oneself waits there."""
        if self._links is None or self._links[0] is not mesh:
            self._links = mesh, neighbours(mesh)
        return self._links[1]

    def _set_state(self) -> None:
        """Call what sets the global state of its modules, where there is such a function, once for a process group."""
        world = dist.group.WORLD if dist.is_initialized() else None
        if world is None or world is self._state_of or self.located.kind not in _HAND_INS:
            return
        self._state_of = world
        if (target := self.state_function) is None:
            return
        available = {"rank": dist.get_rank(), "world_size": dist.get_world_size(), "group": world}
        entry = Entry(name="initialize", block="", aliases=(), orders=(("world_size",), ("rank", "world_size")), doc="")
        args, kwargs = arguments(target, entry, available)
        self.invoke(target, *args, **kwargs)

    def invoke(self, target: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call anything of the implementation's; its own NotImplementedError becomes `NotProvided`."""
        self._workshop.activate()
        try:
            with without_cuda(self.path), attributes_replaced(self.located.stubs):
                return target(*args, **kwargs)
        except ModuleNotFoundError as error:
            absent.explain(error, self.path)
            raise
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
        if (asked := self._asked_for(entry)) is not None:
            return asked
        for module in self.modules:
            adapter = getattr(module, "adapters", self.manifest.get("adapters", {}))
            if isinstance(adapter, Mapping) and entry.name in adapter:
                return self._adapted(module, adapter[entry.name], entry)
        choice = choose(entry, self.modules, own_words=self.located.kind in _HAND_INS)
        if choice.rivals:
            found = _Found(None, "", self._ambiguous(entry, choice.rivals), was_meant=True)
            found.rivals = choice.rivals
            return found
        if choice.reason:
            return _Found(None, "", choice.reason, was_meant=True)
        if choice.taken is None:
            imported = borrowed(entry, self.modules)
            told = f" of its own: {imported}" if imported else ""
            return _Found(None, "", f"{self.name} has no {entry.name}{told}")
        found = self._described(choice.taken.value, choice.taken.spelling, entry)
        found.why = choice.taken.why
        if choice.others and entry.name not in _EACH_BY_ITSELF:
            others = ", ".join(other.told for other in choice.others)
            ask = f"--impl={self.located.asked.where}:{choice.others[0].spelling}"
            found.note = f"{entry.name} is {choice.taken.told}; {others} can be examined, too: {ask}"
        return found

    def _asked_for(self, entry: Entry) -> _Found | None:
        """What the command line says of this name: the table beside the implementation, or PATH:NAME."""
        name = self.located.adapters.get(entry.name)
        stands_for, _, only = self.located.asked.only.rpartition("=")
        if name is None and only and entry.name in ([stands_for] if stands_for else self._stands_for(only)):
            name = only
        if name is None:
            return None
        found = self._adapted(self.modules[0], name, entry)
        found.why = "asked for by its name" if name == only else "the table of adapters"
        return found

    def _stands_for(self, name: str) -> list[str]:
        """The names of the contract for which a name stands; as it is asked for, in whatever module it lies."""
        if self._only is None:
            nodes = [node for path in self.located.candidates for node in definitions(path, name)]
            self._only = [entry for node in nodes for entry in entries_for(name, node)]
        return self._only

    def _ambiguous(self, entry: Entry, rivals: tuple[Candidate, ...]) -> str:
        names = " and ".join([", ".join(rival.told for rival in rivals[:-1]), rivals[-1].told])
        first, spelling = exact_names(rivals)[0], rivals[0].spelling
        told = f'adapters = {{"{entry.name}": "{first}"}}'
        ask = f"--impl={self.located.asked.where}:{spelling}, or {told}"
        return (
            f"{names} could each be {entry.name}, and nothing tells which is meant: "
            f"{f'choose with {ask}' if first == spelling else f'keep one of the files, or choose with {told}'}"
        )

    def _adapted(self, module: ModuleType, adapter: Any, entry: Entry) -> _Found:
        if not isinstance(adapter, str):
            return self._described(adapter, getattr(adapter, "__name__", entry.name), entry)
        for home, spelling in self._homes(module, adapter):
            value: Any = home
            for part in spelling.split("."):
                value = member(value, part)
            if value is not None:
                return self._described(value, spelling, entry)
        reason = f"the adapters table maps {entry.name} to {adapter!r}, which is not defined"
        return _Found(None, "", reason, was_meant=True)

    def _homes(self, first: ModuleType, adapter: str) -> Iterator[tuple[ModuleType, str]]:
        """Where an adapter may be, with its name there; ``file.NAME`` tells which of two files has the one meant."""
        yield from ((home, adapter) for home in (first, *self.modules))
        file, _, name = adapter.partition(".")
        yield from ((home, name) for home in self.modules if name and Path(home.__file__ or "").stem == file)

    def _described(self, value: Any, spelling: str, entry: Entry) -> _Found:
        if entry.orders and not callable(value):
            return _Found(None, "", f"{spelling} is {type(value).__name__}, which cannot be called")
        reason = f"{spelling} is still empty" if entry.orders and is_stub(value) else None
        refusal = unfit(value, entry) if entry.orders and reason is None else None
        return _Found(value, f"{spelling}{place(value)}", reason or refusal, was_meant=refusal is not None)


class _Found:
    """What a look-up gave: a value with its spelling, or the reason why there is none."""

    __slots__ = ("note", "reason", "rivals", "spelling", "value", "was_meant", "why")

    def __init__(self, value: Any, spelling: str, reason: str | None, was_meant: bool = False) -> None:
        self.value = value
        self.spelling = spelling
        self.reason = reason
        self.was_meant = was_meant  # the reason is news to whoever wrote it
        self.why = "the table of adapters"
        self.note = ""
        self.rivals: tuple[Candidate, ...] = ()


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
