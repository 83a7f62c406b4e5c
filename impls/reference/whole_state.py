"""A fully sharded module and its optimizer, put together from all ranks: saved on N ranks, resumed on any number.

The optimizer has flat shards for parameters, and moments of the same layout. Here everything is taken apart again: each
parameter has its own state, in its own shape, under its own name, as if it had never been sharded. All functions are
called on all ranks at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from impls.reference.unit import FlatParameter, Unit


def parameters(units: Iterable[Unit]) -> dict[str, Tensor]:
    """Every parameter whole, under each of its names."""
    found: dict[str, Tensor] = {}
    for flat in _flats(units):
        for place, parameter in zip(flat.places, flat.gathered(flat.shard), strict=True):
            found |= dict.fromkeys(place.names, parameter)
    return found


def state(units: Sequence[Unit], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The whole parameters, the optimizer's state of each of them (under its first name), and the groups' options."""
    states: dict[str, dict[str, Any]] = {}
    for flat in _flats(units):
        for key, value in optimizer.state.get(flat.shard, {}).items():
            for place, part in zip(flat.places, _taken_apart(flat, value), strict=True):
                states.setdefault(place.names[0], {})[key] = part
    options = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    return {"parameters": parameters(units), "optimizer": states, "param_groups": options}


@torch.no_grad()
def load(units: Sequence[Unit], saved: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> None:
    """This rank's shards of what `state` has saved; ValueError if the optimizer has another number of groups."""
    if len(saved["param_groups"]) != len(optimizer.param_groups):
        raise ValueError(
            f"the state was saved with {len(saved['param_groups'])} parameter groups and the optimizer has "
            f"{len(optimizer.param_groups)}: build it with the groups that it had"
        )
    for group, options in zip(optimizer.param_groups, saved["param_groups"], strict=True):
        group.update(options)
    for flat in _flats(units):
        names = [place.names[0] for place in flat.places]
        flat.shard.copy_(flat.shard_of([saved["parameters"][name] for name in names]))
        states = [saved["optimizer"].get(name, {}) for name in names]
        optimizer.state[flat.shard] = {key: _put_together(flat, [one[key] for one in states]) for key in states[0]}


def _flats(units: Iterable[Unit]) -> Iterator[FlatParameter]:
    for unit in units:
        yield from unit.flats


def _taken_apart(flat: FlatParameter, value: Any) -> list[Any]:
    """A part of the state of a shard, for each parameter: its own elements of a moment, a copy of a step count."""
    if isinstance(value, Tensor) and value.shape == flat.shard.shape:
        return flat.gathered(value)
    return [value.clone() if isinstance(value, Tensor) else value for _ in flat.places]


def _put_together(flat: FlatParameter, values: Sequence[Any]) -> Any:
    """The way back; what is not in the shape of the parameter is the same for all of them."""
    if isinstance(values[0], Tensor) and [value.shape for value in values] == flat.shapes:
        return flat.shard_of(values)
    return values[0].clone() if isinstance(values[0], Tensor) else values[0]
