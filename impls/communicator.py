"""A method of a class of collectives, used like a function: the object is made once, when it is first called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


class MethodOf:
    """``Communicator(rank, world_size).all_reduce`` as a function of rank, world_size and what the method takes."""

    def __init__(self, owner: type, method: str) -> None:
        self.owner, self.method = owner, method
        self.__name__ = f"{owner.__name__}.{method}"
        self.__wrapped__ = getattr(owner, method)  # where it is defined, and whether it is empty
        self._made: list[tuple[dict[str, Any], Any]] = []
        self._for_owner = _parameters(owner)
        self._for_method = _parameters(self.__wrapped__)[1:]
        names = {p.name: p for p in (*self._for_method, *self._for_owner)}
        self.__signature__ = inspect.Signature([p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in names.values()])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MethodOf) and (other.owner, other.method) == (self.owner, self.method)

    def __hash__(self) -> int:
        return hash((self.owner, self.method))

    def __call__(self, **values: Any) -> Any:
        """Call the method of the object that these values make."""
        given = {p.name: values[p.name] for p in self._for_owner if p.name in values}
        made = next((made for known, made in self._made if _same(known, given)), None)
        if made is None:
            made = self.owner(**given)
            self._made.append((given, made))
        rest = {p.name: values[p.name] for p in self._for_method if p.name in values}
        bound: Callable[..., Any] = getattr(made, self.method)
        return bound(**rest)


def method_of(owner: type, method: str) -> MethodOf:
    """The method `method` of objects of `owner`, as a function."""
    return MethodOf(owner, method)


def member(owner: Any, name: str) -> Any:
    """What an owner has under a name, None when it has nothing; a class's method as a function of all it needs."""
    value = getattr(owner, name, None)
    if inspect.isclass(owner) and inspect.isfunction(inspect.getattr_static(owner, name, None)):
        return method_of(owner, name)
    return value


def _parameters(target: Any) -> list[inspect.Parameter]:
    try:
        found = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _same(known: dict[str, Any], given: dict[str, Any]) -> bool:
    return known.keys() == given.keys() and all(
        known[name] is given[name] or _equal(known[name], given[name]) for name in known
    )


def _equal(one: Any, other: Any) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one == other
