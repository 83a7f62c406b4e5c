"""How a program that knows nothing of the suite gets at what an implementation provides: what it has to write out.

Of each name of the contract the file that is to be loaded, and an expression on ``names``, which are those of its
module: ``names['my_ring']``, ``names['adapters']['all_reduce']``. A method of a class that collects them is reached
through its class, with the arguments of that class. Nothing here knows what a program is written for.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from impls.arrays import knows_arrays_only
from impls.communicator import MethodOf, member
from impls.contract import ENTRIES, Entry
from impls.handover import bindings
from impls.step_forms import stage_class

if TYPE_CHECKING:
    from impls.loading import Implementation

Reach = dict[str, Any]
_STATE = Entry(name="initialize", block="", aliases=(), orders=(("world_size",), ("rank", "world_size")), doc="")


def reach(impl: Implementation, name: str) -> Reach:
    """Where a provided name is and how it is called; empty where it cannot be said.

    ``file``, ``names`` (the expression), ``is_own`` (whether it is defined in that file), ``required`` (parameters
    without a default), ``owner`` and ``method`` for a method (its class's parameters, and its own name), ``arrays``
    where it is handed numpy's arrays.
    """
    value = impl.get(name)
    if name == "train_step" and stage_class(value) is not None:
        return {}  # its stage is to be made first, from arguments that `pipelines` chooses
    for module, expression in _expressions(impl, name, value):
        if (file := getattr(module, "__file__", None)) is None:
            continue
        found: Reach = {"file": str(file), "names": expression, "is_own": _is_in(name, value, module)}
        if callable(value):
            found["required"] = [p.name for p in _parameters(value) if p.default is p.empty]
        if isinstance(value, MethodOf):
            found |= {"owner": [p.name for p in _parameters(value.owner)], "method": value.method}
        arrays = ENTRIES[name].block == "collectives" and knows_arrays_only(value)
        return found | ({"arrays": True} if arrays else {})
    return {}


def before(impl: Implementation) -> Reach:
    """What has to be done before anything is called: ``stubs``, ``shim`` for its device, ``initialize``.

    The last is a function that sets state: its name, its file, and what its parameters are handed. ``left_out``: a
    package around it cannot be imported as it stands.
    """
    located = impl.located
    found: Reach = {"stubs": list(located.stubs)} if located.stubs else {}
    if located.asked.device_shim and not torch.cuda.is_available():
        found["shim"] = True
    if impl.has_left_out:
        found["left_out"] = True
    if (state := impl.state_function) is not None:
        home = next(module for module in impl.modules if getattr(module, state.__name__, None) is state)
        found["initialize"] = [state.__name__, str(getattr(home, "__file__", "")), bindings(state, _STATE)]
    return found


def _expressions(impl: Implementation, name: str, value: Any) -> Iterator[tuple[ModuleType, str]]:
    """Modules with an expression that gives the value there; for a method, one that gives its class."""
    spelling = impl.provides(ENTRIES[name].block).get(name, "").partition(" (")[0]
    first, *rest = spelling.split(".")
    inner = rest[:-1] if isinstance(value, MethodOf) else rest
    for module in impl.modules:
        for where, table in _tables(module):
            if table.get(name) is value and value is not None:
                yield module, f"names{where}[{name!r}]"
        found: Any = module
        for part in (first, *rest):
            found = None if found is None else member(found, part)
        if found is not None and (found is value or (isinstance(value, MethodOf) and found == value)):
            yield module, "".join([f"names[{first!r}]", *(f".{part}" for part in inner)])


def _tables(module: ModuleType) -> Iterator[tuple[str, Mapping[str, Any]]]:
    manifest = getattr(module, "MANIFEST", None)
    inner = manifest.get("adapters") if isinstance(manifest, Mapping) else None
    for where, table in (("['adapters']", getattr(module, "adapters", None)), ("['MANIFEST']['adapters']", inner)):
        if isinstance(table, Mapping):
            yield where, table


def _is_in(name: str, value: Any, module: ModuleType) -> bool:
    """Whether it is defined in the module, and not taken from elsewhere."""
    if not callable(value):
        return re.search(rf"^{name}\b.*=", inspect.getsource(module), re.MULTILINE) is not None
    target = getattr(value, "owner", value)
    return getattr(inspect.unwrap(target), "__module__", "") == module.__name__


def _parameters(target: Any) -> list[inspect.Parameter]:
    try:
        found = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):  # builtins and the like have none
        return []
    return [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
