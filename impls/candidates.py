"""What in an implementation's modules may stand for a name of the contract, and which of it does.

The contract's own name wins, then the names of the lists, then names by their parts, then methods of a communicator or
wrapper. Where several that have nothing to do with each other are left, none is taken: whoever wrote them chooses.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from impls.communicator import method_of
from impls.contract import Entry
from impls.contract.names import COMMUNICATORS, FAMILIES, WRAPPER_METHODS
from impls.contract.patterns import entries_of
from impls.definitions import file_of, is_library, is_stub, place
from impls.locate import collectives_in, entries_for
from impls.step_forms import which_stage
from impls.unfit import unfit


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A definition with the name it has there, and why it is taken for what it is."""

    value: Any
    spelling: str
    why: str

    @property
    def told(self) -> str:
        """Its name and place."""
        return f"{self.spelling}{place(self.value)}"


def exact_names(candidates: Sequence[Candidate]) -> list[str]:
    """What a table of adapters calls each of them: by its file as well where two have one name."""
    spellings = [each.spelling for each in candidates]
    return [
        each.spelling if spellings.count(each.spelling) == 1 else f"{file_of(each.value)}{each.spelling}"
        for each in candidates
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen; where nothing was, `rivals` are those among which nobody but their author can choose.

    `reason` says what nothing tells of the only one that is left.
    """

    taken: Candidate | None
    rivals: tuple[Candidate, ...] = ()
    reason: str = ""
    others: tuple[Candidate, ...] = ()  # of one family with what was taken: each can be asked for by its name


def choose(entry: Entry, modules: Sequence[ModuleType], own_words: bool) -> Choice:
    """Choose for one name of the contract. `own_words`: names by their parts count, too."""
    listed = _written([*_named(entry, (entry.name,), modules, "the contract's name")])
    if listed and not all(is_stub(found.value) for found in listed):
        return Choice(listed[0])
    found = _written([*_named(entry, entry.aliases, modules, f"another name of {entry.name}")])
    if own_words and entry.orders:
        found = _written([*found, *_by_parts(entry, modules), *_by_methods(entry, modules)])
    full = [candidate for candidate in found if not is_stub(candidate.value)]
    callable_ones = [each for each in full if not (entry.orders and unfit(each.value, entry))]
    left = outermost(callable_ones or full)
    if not left:
        return Choice(next(iter([*listed, *found]), None))
    if entry.name == "train_step" and (open_question := _open_question(left, full)):
        return Choice(None, reason=open_question)
    family = FAMILIES.get(entry.name, ())
    if len(left) == 1 or all(candidate.spelling in family for candidate in left):
        return Choice(left[0], others=tuple(left[1:]))
    if not own_words:  # what is bundled with the suite says by its order what it means
        return Choice(left[0])
    return Choice(None, rivals=tuple(left))


def borrowed(entry: Entry, modules: Sequence[ModuleType]) -> str:
    """What stands under one of its names and is the library's own, with whose; empty where nothing does.

    The library's collectives stand in every file that uses them, and nobody means them to be examined.
    """
    if entry.block == "collectives":
        return ""
    named = _named(entry, (entry.name, *entry.aliases), modules, "")
    taken = next((each for each in named if entry.orders and is_library(each.value)), None)
    return f"{taken.spelling} there is {taken.value.__module__}'s" if taken else ""


def _open_question(left: Sequence[Candidate], full: Sequence[Candidate]) -> str:
    """What a function leaves open whose stage could be a module, or an object of a class that stands beside it."""
    classes = [each.value for each in full if inspect.isclass(each.value)]
    return next((told for each in left if (told := which_stage(each.value, classes))), "")


def outermost(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that no other one is made of: a function around a class speaks for it, a base for nobody."""
    return [
        each
        for each in candidates
        if not any(_stands_on(other, each) for other in candidates if other is not each)
        or any(_stands_on(each, other) for other in candidates if other is not each)
    ]


def _stands_on(outer: Candidate, inner: Candidate) -> bool:
    if inspect.isclass(inner.value) and inspect.isclass(outer.value) and issubclass(outer.value, inner.value):
        return any(word in inner.spelling.lower() for word in ("base", "abstract"))
    name = getattr(inner.value, "__name__", inner.spelling)
    return any({name, inner.spelling} & set(code.co_names) for code in _codes(outer.value))


def _codes(value: Any) -> Iterator[Any]:
    functions = [value, *(vars(value).values() if inspect.isclass(value) else ())]
    for function in functions:
        code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
        if code is not None:
            yield code


def _named(entry: Entry, names: Sequence[str], modules: Sequence[ModuleType], why: str) -> Iterator[Candidate]:
    for spelling in names:
        for module in modules:
            value = getattr(module, spelling, None)
            if value is not None and (callable(value) or not entry.orders):
                yield Candidate(value, spelling, why)


def _defined(modules: Sequence[ModuleType], wanted: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    for module in modules:
        for name, value in list(vars(module).items()):
            if not name.startswith("_") and wanted(value) and not is_library(value):
                yield name, value


def _by_parts(entry: Entry, modules: Sequence[ModuleType]) -> Iterator[Candidate]:
    for name, value in _defined(modules, lambda value: inspect.isclass(value) or inspect.isfunction(value)):
        if entry.name in entries_of(name, inspect.isclass(value)):
            yield Candidate(value, name, "by the parts of its name")


def _by_methods(entry: Entry, modules: Sequence[ModuleType]) -> Iterator[Candidate]:
    """A class that ends a step as wrappers do; a method of a communicator."""
    for name, value in _defined(modules, inspect.isclass):
        method = next(
            (each for each in WRAPPER_METHODS.get(entry.name, ()) if callable(getattr(value, each, None))), ""
        )
        if method and not entries_for(name):
            yield Candidate(value, name, f"by its method {method}")
        elif entry.block == "collectives" and COMMUNICATORS.search(name):
            methods = [each for each, _ in inspect.getmembers(value, inspect.isfunction)]
            for spelling in collectives_in(methods).get(entry.name, ()):
                yield Candidate(method_of(value, spelling), f"{name}.{spelling}", "a method of a communicator")


def _written(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that somebody wrote, each once under the first of its names."""
    distinct: dict[int, Candidate] = {}
    for candidate in candidates:
        if not is_library(candidate.value):
            distinct.setdefault(_identity(candidate.value), candidate)
    return list(distinct.values())


def _identity(value: Any) -> int:
    return hash(value) if hasattr(value, "owner") and hasattr(value, "method") else id(value)
