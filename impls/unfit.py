"""Why a definition cannot stand for a name of the contract, though it is called like it: its signature says so."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from impls.contract import Entry
from impls.handover import cannot_be_called, takes, takes_any_keyword
from impls.step_forms import no_step

# What has to be asked for, as nothing could be seen without it: a script's own ``worker(rank, world_size)`` trains what
# it makes itself.
_NEEDED: Mapping[str, tuple[str, ...]] = {"train": ("make_model", "inputs"), "train_step": ("stage",)}


def unfit(value: Any, entry: Entry) -> str | None:
    """The reason; None where it fits. It has been found to be no stub."""
    if entry.name == "train_step" and inspect.isclass(value):
        return no_step(value) or cannot_be_called(value, entry)
    return _trains_its_own(value, entry) or cannot_be_called(value, entry)


def _trains_its_own(value: Callable[..., Any], entry: Entry) -> str:
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return ""
    if takes_any_keyword(value) or any(found.kind is found.VAR_POSITIONAL for found in parameters):
        return ""
    lacking = [name for name in _NEEDED.get(entry.name, ()) if not takes(value, name)]
    if not lacking:
        return ""
    name = getattr(value, "__name__", "it")
    return (
        f"{name}({', '.join(found.name for found in parameters)}) asks for no {' and no '.join(lacking)}: it trains "
        f"what it makes itself, as a script's own worker does, so it is not taken for the contract's {entry.name}. "
        f"Watch the script as it is by python -m fixtures.doctor --nproc 2 -- FILE, or let it take "
        f"{', '.join(entry.orders[0])}, as far as it needs them"
    )
