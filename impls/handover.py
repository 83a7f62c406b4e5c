"""Arguments by parameter name, the way pytest hands over fixtures: what a function asks for, it gets.

Knows signatures and the contract's tables of spellings; nothing of files or of what the functions do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from impls.contract import ENTRIES, Entry
from impls.contract.parameters import SYNONYMS

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
_EVERYWHERE = ("rank", "world_size", "group")  # which a caller may offer beside the contract's own


class NotProvided(Exception):
    """The implementation has nothing for this name; the text is the reason, for the report."""


def arguments(
    target: Callable[..., Any], entry: Entry, available: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments for `target` out of `available` (keys: the contract's parameter names).

    A None is handed only to a parameter without a default. What has no names (a builtin, ``*args``) is given the
    contract's parameters in order. Raises `NotProvided` when a required parameter has no value: what an unknown name
    stands for is never guessed from its place.
    """
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):  # builtins and the like have none
        return _in_order(entry, available), {}
    named = [parameter for parameter in parameters if parameter.kind in _NAMED]
    kinds = {parameter.kind for parameter in parameters}
    if not named and inspect.Parameter.VAR_POSITIONAL in kinds:
        return _in_order(entry, available), {}
    if not named and inspect.Parameter.VAR_KEYWORD in kinds:
        return [], {name: available[name] for name in _order(entry, available)}

    chosen = _choose([parameter.name for parameter in named], available)
    missing = [p for p in named if p.name not in chosen and p.default is p.empty]
    if missing:
        raise NotProvided(_cannot(target, entry, missing, chosen, available))
    return _spread(named, chosen, available)


def takes(target: Any, parameter: str) -> bool:
    """Whether the signature of `target` has `parameter`, in any spelling that is understood."""
    names = _parameters(target)
    return any(spelling in names for spelling in (parameter, *SYNONYMS.get(parameter, ())))


def requires(target: Any, parameter: str) -> bool:
    """Whether `target` cannot be called without `parameter`, in any spelling that is understood."""
    found = _parameters(target)
    named = [found[spelling] for spelling in (parameter, *SYNONYMS.get(parameter, ())) if spelling in found]
    return any(each.default is each.empty for each in named)


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


def _order(entry: Entry, available: Mapping[str, Any]) -> list[str]:
    """The longest of the contract's orders, cut to what is available."""
    orders = [[name for name in order if name in available] for order in entry.orders]
    return max(orders, key=len, default=list(available))


def _in_order(entry: Entry, available: Mapping[str, Any]) -> list[Any]:
    return [available[name] for name in _order(entry, available)]


def _cannot(
    target: Callable[..., Any],
    entry: Entry,
    missing: Sequence[inspect.Parameter],
    chosen: Mapping[str, str],
    available: Mapping[str, Any],
) -> str:
    """What is missing, what there is, and the line that says which is which."""
    name = getattr(target, "__name__", entry.name)
    said = (
        f"{name} asks for {_asked([parameter.name for parameter in missing])}. Arguments are handed over by name; "
        f"{entry.name} can have {', '.join(available)}"
    )
    if entry.name not in ENTRIES:  # a method of what the implementation returned
        return f"{said}. Rename the parameter"
    handed = ", ".join([*chosen.values(), "..."])
    given = ", ".join([*(f"{own}={key}" for own, key in chosen.items()), *(f"{p.name}=..." for p in missing)])
    return (
        f"{said}. Rename the parameter, or say what is meant: "
        f'adapters = {{"{entry.name}": lambda {handed}: {name}({given})}}'
    )


def _asked(names: Sequence[str]) -> str:
    """The names, and what is wrong with them: known from elsewhere, or to nobody."""
    meant = {name: _meant(name) for name in names}
    known = [f"{name!r}, and no {key} is offered here" for name, key in meant.items() if key]
    unknown = ", ".join(repr(name) for name, key in meant.items() if not key)
    return "; ".join([*([f"{unknown}, which nothing is known to fill"] if unknown else []), *known])


def _meant(name: str) -> str:
    if len(name) == 1:  # a letter is known under too many names to say which
        return ""
    return next((key for key, synonyms in SYNONYMS.items() if name == key or name in synonyms), "")
