"""A fully sharded module and its optimizer, put together from all ranks: saved on N ranks, resumed on any number.

The optimizer has pieces of parameters, and moments of the same layout. Here everything becomes whole again, under the
parameters' names, as if it had never been sharded. All functions are called on all ranks at once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.reference.cut import Place
from impls.reference.unit import Unit


def parameters(units: Iterable[Unit]) -> dict[str, Tensor]:
    """Every parameter whole, under each of its names."""
    found: dict[str, Tensor] = {}
    for unit in units:
        for flat in unit.flats:
            for place, parameter in zip(flat.places, flat.gathered(), strict=True):
                found |= dict.fromkeys(place.names, parameter)
    return found


def state(units: Sequence[Unit], optimizer: torch.optim.Optimizer, group: dist.ProcessGroup | None) -> dict[str, Any]:
    """The whole parameters, the optimizer's state of each of them (by its first name), and its groups' options."""
    own = {place.names[0]: dict(optimizer.state.get(piece, {})) for place, piece, _ in _pieces(units)}
    everyone: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyone, own, group=group)
    whole = parameters(units)
    states = {}
    for name in own:
        parts = [rank[name] for rank in everyone if rank[name]]  # in rank order: from the first elements to the last
        states[name] = {key: _join([part[key] for part in parts], whole[name]) for key in (parts[0] if parts else ())}
    options = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    return {"parameters": whole, "optimizer": states, "param_groups": options}


@torch.no_grad()
def load(units: Sequence[Unit], saved: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> None:
    """This rank's pieces of what `state` has saved. ValueError if the optimizer has another number of groups."""
    there, here = len(saved["param_groups"]), len(optimizer.param_groups)
    if there != here:
        raise ValueError(
            f"the state is that of an optimizer with {there} parameter groups, this one has {here}; build it from the "
            "same groups as the one that was saved"
        )
    for group, options in zip(optimizer.param_groups, saved["param_groups"], strict=True):
        group.update(options)
    for place, piece, span in _pieces(units):
        name = place.names[0]
        whole = saved["parameters"][name]
        piece.copy_(whole.flatten()[span])
        if piece.numel():
            own = saved["optimizer"].get(name, {})
            optimizer.state[piece] = {key: _cut(value, span) for key, value in own.items()}


@torch.no_grad()
def clip(pieces: Iterable[nn.Parameter], max_norm: float, group: dist.ProcessGroup | None) -> Tensor:
    """Scale the gradients down to the global norm `max_norm`; the norm that they had. []

    A rank has pieces only, so the squares are added up over all ranks before the root is taken.
    """
    gradients = [piece.grad for piece in pieces if piece.grad is not None]
    wide = [torch.promote_types(gradient.dtype, torch.float64) for gradient in gradients]
    norms = [torch.linalg.vector_norm(g, dtype=dtype) for g, dtype in zip(gradients, wide, strict=True)]
    square = torch.stack([torch.zeros((), dtype=torch.float64), *(norm**2 for norm in norms)]).sum()
    dist.all_reduce(square, group=group)
    norm = square.sqrt()
    for gradient in gradients:
        gradient *= (max_norm / (norm + 1e-6)).clamp(max=1)  # as torch.nn.utils.clip_grad_norm_ does
    return norm


def _pieces(units: Iterable[Unit]) -> Iterator[tuple[Place, nn.Parameter, slice]]:
    for unit in units:
        for flat in unit.flats:
            yield from zip(flat.places, flat.pieces, flat.spans, strict=True)


def _join(values: list[Any], parameter: Tensor) -> Any:
    """One entry of a parameter's state from those of its pieces: put together, or the same for all (a step count)."""
    if isinstance(values[0], Tensor) and values[0].dim() == 1:
        return torch.cat(values).view(parameter.shape or 1)  # never without dimensions, as a step count is
    return values[0]


def _cut(value: Any, span: slice) -> Any:
    """The reverse: what a piece has of one entry of its parameter's state."""
    return value.flatten()[span].clone() if isinstance(value, Tensor) and value.dim() else copy.deepcopy(value)
