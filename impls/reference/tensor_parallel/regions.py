"""The operators at the borders of a parallel region. Each is the other's backward pass: they come in pairs.

    forward                     backward                     where
    copy (f)                    all-reduce                   into a column-parallel layer
    all-reduce (g)              copy                         out of a row-parallel layer
    scatter, last dimension     gather                       into a row-parallel layer that is given the whole input
    gather, last dimension      scatter                      out of a column-parallel layer that stands alone
    gather, sequence            reduce-scatter               into a region, with sequence parallelism
    reduce-scatter, sequence    gather                       out of a region, with sequence parallelism

Every rank computes the same loss, so a whole tensor has its whole gradient on each rank already: the backward pass of
*gather* takes a part of it and sums nothing, and that of g passes it on. Sources: Shoeybi et al. 2019 (1909.08053),
figure 3; Korthikanti et al. 2022 (2205.05198), figure 5.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

Group = dist.ProcessGroup | None
LAST = -1


def copy_to_region(tensor: Tensor, group: Group = None) -> Tensor:
    """f: each rank's region uses `tensor` for its own part of the output, so the parts of its gradient are summed."""
    return _apply(_Copy, tensor, group)


def reduce_from_region(tensor: Tensor, group: Group = None) -> Tensor:
    """g: the sum over ranks."""
    return _apply(_Reduce, tensor, group)


def scatter_to_region(tensor: Tensor, group: Group = None) -> Tensor:
    """This rank's part of [.., width]: [.., width/N]. Raises ValueError where N does not divide the width."""
    return _apply(_Scatter, tensor, group)


def gather_from_region(tensor: Tensor, group: Group = None) -> Tensor:
    """The parts of all ranks, in rank order: [.., width/N] to [.., width]."""
    return _apply(_Gather, tensor, group)


def gather_sequence(tensor: Tensor, group: Group = None, dim: int = 1) -> Tensor:
    """The whole sequence, of [batch, sequence/N, width]: each rank uses all of it, so the gradients are summed."""
    return _apply(_GatherSequence, tensor, group, dim)


def reduce_scatter_sequence(tensor: Tensor, group: Group = None, dim: int = 1) -> Tensor:
    """This rank's part of the sequence, of the sum over ranks: [batch, sequence, width] to [batch, sequence/N, width].

    With `gather_sequence` it sends as much as an all-reduce, which consists of the two.
    """
    return _apply(_ReduceScatterSequence, tensor, group, dim)


def share_gradient(parameter: torch.nn.Parameter, group: Group = None) -> None:
    """Sum the gradient of a parameter that every rank has whole, and uses on its own part of the sequence only."""
    if parameter.requires_grad:
        parameter.register_hook(lambda gradient: all_reduce(gradient, group))  # type: ignore[no-untyped-call]


def all_reduce(tensor: Tensor, group: Group) -> Tensor:
    """The sum over ranks, in memory of its own: `tensor` may be somebody else's."""
    total = tensor.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    return total


def all_gather(tensor: Tensor, group: Group, dim: int) -> Tensor:
    """The parts of all ranks along `dim`, in rank order."""
    parts = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, tensor.contiguous(), group=group)
    return torch.cat(parts, dim)


def reduce_scatter(tensor: Tensor, group: Group, dim: int) -> Tensor:
    """This rank's part along `dim` of the sum over ranks."""
    parts = [part.contiguous() for part in parts_of(tensor, group, dim)]
    own = torch.empty_like(parts[0])
    dist.reduce_scatter(own, parts, group=group)
    return own


def parts_of(tensor: Tensor, group: Group, dim: int) -> tuple[Tensor, ...]:
    """The N equal parts along `dim`, as views. Raises ValueError where N does not divide it."""
    size, world_size = tensor.shape[dim], dist.get_world_size(group)
    if size % world_size:
        raise ValueError(f"dimension {dim} has {size} elements, which {world_size} ranks cannot share equally")
    return tensor.chunk(world_size, dim)


def part_of(tensor: Tensor, group: Group, dim: int) -> Tensor:
    """This rank's part along `dim`, in memory of its own: a view would keep the whole alive."""
    return parts_of(tensor, group, dim)[dist.get_rank(group)].clone(memory_format=torch.contiguous_format)


def _apply(operator: type[torch.autograd.Function], tensor: Tensor, group: Group, dim: int = LAST) -> Tensor:
    out: Tensor = operator.apply(tensor, group, dim)  # type: ignore[no-untyped-call]
    return out


class _Operator(torch.autograd.Function):
    """Remembers the group and the dimension for the backward pass."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Group, int], output: Tensor) -> None:
        _, ctx.group, ctx.dim = inputs


class _Copy(_Operator):
    @staticmethod
    def forward(tensor: Tensor, group: Group, dim: int) -> Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return all_reduce(gradient, ctx.group), None, None


class _Reduce(_Operator):
    @staticmethod
    def forward(tensor: Tensor, group: Group, dim: int) -> Tensor:
        return all_reduce(tensor, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient, None, None


class _Scatter(_Operator):
    @staticmethod
    def forward(tensor: Tensor, group: Group, dim: int) -> Tensor:
        return part_of(tensor, group, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return all_gather(gradient, ctx.group, ctx.dim), None, None


class _Gather(_Operator):
    @staticmethod
    def forward(tensor: Tensor, group: Group, dim: int) -> Tensor:
        return all_gather(tensor, group, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return part_of(gradient, ctx.group, ctx.dim), None, None


class _GatherSequence(_Operator):
    @staticmethod
    def forward(tensor: Tensor, group: Group, dim: int) -> Tensor:
        return all_gather(tensor, group, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return reduce_scatter(gradient, ctx.group, ctx.dim), None, None


class _ReduceScatterSequence(_Operator):
    @staticmethod
    def forward(tensor: Tensor, group: Group, dim: int) -> Tensor:
        return reduce_scatter(tensor, group, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return all_gather(gradient, ctx.group, ctx.dim), None, None
