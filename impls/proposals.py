"""What is in an implementation and was taken for nothing: which names of the contract its signature fits.

A proposal is for whoever wrote it, who puts it into the table of adapters or does not; nothing is taken by it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from impls.communicator import method_of
from impls.contract import ENTRIES, Entry
from impls.contract.methods import STATE_FUNCTIONS
from impls.contract.parameters import SYNONYMS
from impls.definitions import is_library, is_stub
from impls.locate import collectives_in, entries_for
from impls.unfit import unfit

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
MAX_ENTRIES = 3


def proposals(modules: Sequence[ModuleType], taken: Sequence[Any]) -> dict[str, list[str]]:
    """Public definitions of these modules beside those taken, each with the names that it may stand for."""
    known = {id(value) for value in taken}
    used = {name for value in taken for code in _codes(value) for name in code.co_names}
    found = {}
    for module in modules:
        for name, value in vars(module).items():
            if (
                name.startswith("_")
                or name in used
                or id(value) in known
                or entries_for(name)
                or name in STATE_FUNCTIONS
            ):
                continue
            if not _is_own(value, module):
                continue
            if entries := _fitting(name, value):
                found[name] = entries[:MAX_ENTRIES]
            elif inspect.isclass(value):
                found |= _collectives_of(name, value)
    return found


def _collectives_of(name: str, value: type) -> dict[str, list[str]]:
    """The collectives among the methods of a class whose own name does not say what it is."""
    methods = [each for each, _ in inspect.getmembers(value, inspect.isfunction) if not each.startswith("_")]
    return {
        f"{name}.{spelling}": [entry]
        for entry, spellings in collectives_in(methods).items()
        for spelling in spellings
        if not unfit(method_of(value, spelling), ENTRIES[entry])
    }


def _is_own(value: Any, module: ModuleType) -> bool:
    defined = inspect.isclass(value) or inspect.isfunction(value)
    return defined and not is_library(value) and not is_stub(value) and value.__module__ == module.__name__


def _fitting(name: str, value: Any) -> list[str]:
    """Entries whose parameters fill, by name, all that the signature asks for: those that share most words."""
    required = _required(value)
    if not required:
        return []
    words = _words(name)
    scores = {}
    for entry in ENTRIES.values():
        shared = max((len(words & _words(spelling)) for spelling in entry.spellings), default=0)
        if (
            shared
            and _is_meant(entry, words)
            and _is_alike(entry, value)
            and required <= _names(entry)
            and not unfit(value, entry)
        ):
            scores[entry.name] = shared
    best = max(scores.values(), default=0)
    return [name for name, shared in scores.items() if shared == best]


def _is_meant(entry: Entry, words: set[str]) -> bool:
    """A cure is one by what it is for; a function that says nothing of that is the collective or helper it names."""
    return entry.block != "cures" or "cure" in words


def _is_alike(entry: Entry, value: Any) -> bool:
    return not inspect.isclass(value) or entry.name[:1].isupper() or entry.name in ("fully_shard", "train_step")


def _required(value: Any) -> set[str]:
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return set()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name for p in parameters if p.default is p.empty and p.kind not in kinds}


def _names(entry: Entry) -> set[str]:
    keys = {key for order in entry.orders for key in order} | {"rank", "world_size", "group"}
    return {name for key in keys for name in (key, *SYNONYMS.get(key, ()))}


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)} - {"my", "get", "the", "of", "and", "1", "2"}


def _codes(value: Any) -> list[Any]:
    functions = [value, *(vars(value).values() if inspect.isclass(value) else ())]
    return [function.__code__ for function in functions if hasattr(function, "__code__")]
