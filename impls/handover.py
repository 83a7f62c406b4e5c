"""Arguments by parameter name, the way pytest hands over fixtures: what a function asks for, it gets.

Knows signatures and the contract's tables of spellings; nothing of files or of what the functions do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from impls.contract import Entry
from impls.contract.spellings import SYNONYMS

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
_EVERYWHERE = ("rank", "world_size", "group")  # which a caller may offer beside the contract's own


class NotProvided(Exception):
    """The implementation has nothing for this name; the text is the reason, for the report."""


def arguments(
    target: Callable[..., Any], entry: Entry, available: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments for `target` out of `available` (keys: the contract's parameter names).

    A None is handed only to a parameter without a default. Parameters of unknown names are filled in the contract's
    order when their number fits one, and those of known names stand at their places in it. Raises `NotProvided` when a
    required parameter has no value.
    """
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):  # builtins and the like have none
        return _in_order(entry, available, count=None), {}
    named = [parameter for parameter in parameters if parameter.kind in _NAMED]
    kinds = {parameter.kind for parameter in parameters}
    if not named and inspect.Parameter.VAR_POSITIONAL in kinds:
        return _in_order(entry, available, count=None), {}
    if not named and inspect.Parameter.VAR_KEYWORD in kinds:
        order = _orders(entry, available)[0]
        return [], {name: available[name] for name in order}

    chosen = _choose([parameter.name for parameter in named], available)
    missing = [p for p in named if p.name not in chosen and p.default is p.empty]
    if missing:
        required = [p for p in named if p.default is p.empty]
        if any(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in required):
            raise NotProvided(_cannot(target, entry, missing, available))
        words = (p if len(p.name) > 1 else None for p in required)  # a letter may stand for anything
        known = {place: chosen[p.name] for place, p in enumerate(words) if p is not None and p.name in chosen}
        values = _in_order(entry, available, count=len(required), known=known)
        if len(values) != len(required):
            raise NotProvided(_cannot(target, entry, missing, available))
        return values, {}
    return _spread(named, chosen, available)


def takes(target: Any, parameter: str) -> bool:
    """Whether the signature of `target` has `parameter`, in any spelling that is understood."""
    names = _parameters(target)
    return any(spelling in names for spelling in (parameter, *SYNONYMS.get(parameter, ())))


def takes_any_keyword(target: Any) -> bool:
    """Whether `target` has a ``**kwargs``."""
    return any(found.kind is inspect.Parameter.VAR_KEYWORD for found in _parameters(target).values())


def _parameters(target: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):  # nothing, or a builtin
        return {}


def cannot_be_called(target: Callable[..., Any], entry: Entry) -> str | None:
    """Why nothing that the contract offers under this name fills the parameters of `target`; None when it can be."""
    offered = dict.fromkeys(name for order in entry.orders for name in (*order, *_EVERYWHERE))
    try:
        arguments(target, entry, dict.fromkeys(offered, ...))
    except NotProvided as error:
        return str(error)
    return None


def bindings(target: Callable[..., Any], entry: Entry) -> dict[str, str]:
    """By parameter of `target`, what it is handed: a name of the contract, or nothing where its default stays."""
    offered = dict.fromkeys(name for order in entry.orders for name in (*order, *_EVERYWHERE))
    try:
        args, kwargs = arguments(target, entry, {name: name for name in offered})
        bound = inspect.signature(target).bind(*args, **kwargs).arguments
    except (NotProvided, TypeError, ValueError):
        return {}
    return {name: str(bound.get(name, "")) for name in inspect.signature(target).parameters if name != "kwargs"}


def _choose(names: Sequence[str], available: Mapping[str, Any]) -> dict[str, str]:
    """Parameter name -> key of `available`: the exact names first, then the synonyms of keys that are still free."""
    chosen = {name: name for name in names if name in available}
    for key, synonyms in SYNONYMS.items():
        if key in available and key not in chosen.values():
            match = next((name for name in synonyms if name in names and name not in chosen), None)
            if match is not None:
                chosen[match] = key
    return chosen


def _spread(
    named: Sequence[inspect.Parameter], chosen: Mapping[str, str], available: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in named:
        has_default = parameter.default is not parameter.empty
        value = available.get(chosen.get(parameter.name, ""))
        wanted = parameter.name in chosen and not (value is None and has_default)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            args.append(value if wanted else parameter.default)
        elif wanted:
            kwargs[parameter.name] = value
    return args, kwargs


def _orders(entry: Entry, available: Mapping[str, Any]) -> list[list[str]]:
    """The contract's orders cut to what is available, longest first; never empty."""
    orders = [[name for name in order if name in available] for order in entry.orders]
    return sorted(orders, key=len, reverse=True) or [list(available)]


def _in_order(
    entry: Entry, available: Mapping[str, Any], count: int | None, known: Mapping[int, str] | None = None
) -> list[Any]:
    """Values in the contract's order that has `count` parameters available (None: the longest).

    An order fits only if what is `known` by its name stands at its place in it.
    """
    orders = [
        order
        for order in _orders(entry, available)
        if all(order[place : place + 1] == [name] for place, name in (known or {}).items())
    ]
    fitting = [order for order in orders if count is None or len(order) == count]
    prefixes = [order[:count] for order in orders if count is not None and len(order) > count]
    order = next(iter([*fitting, *reversed(prefixes)]), [])
    return [available[name] for name in order]


def _cannot(
    target: Callable[..., Any], entry: Entry, missing: Sequence[inspect.Parameter], available: Mapping[str, Any]
) -> str:
    name = getattr(target, "__name__", entry.name)
    return (
        f"{name} asks for {', '.join(repr(parameter.name) for parameter in missing)}, which nothing is known to fill. "
        f"Parameters are handed over by name; {entry.name} can have {', '.join(available)}."
    )
