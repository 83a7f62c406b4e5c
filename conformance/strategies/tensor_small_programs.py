"""Rank programs about two parts of tensor parallelism: what dropout draws, and the operators. Imports no pytest."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from conformance.strategies.tensor_case import Case
from conformance.strategies.tensor_programs import built
from fixtures import blocks
from fixtures.world.context import RankContext

COMMON_GRADIENT = ("reduce_from_region", "gather_from_region")  # their outputs are whole: the loss is the same


def dropped(ctx: RankContext, way: str, num_heads: int, head_dim: int, length: int) -> dict[str, Any]:
    """Attention with equal heads, and torch's generator in the same state on all ranks: what each head let through.

    All scores are zero and v is the same in each head: outputs of two heads differ only in what was dropped.
    """
    assert ctx.impl is not None
    width = num_heads * head_dim
    whole = blocks.Attention(width, num_heads, bias=False, dropout=0.5)
    eye = torch.eye(head_dim).repeat(num_heads, 1)
    with torch.no_grad():
        whole.q.weight.zero_()
        whole.k.weight.zero_()
        whole.v.weight.zero_()
        whole.v.weight[:, :head_dim] = eye  # every head sees the first features
        whole.out.weight.copy_(torch.eye(width))
    layer = built(ctx, Case(way=way, width=width, num_heads=num_heads), whole)
    layer.train()
    torch.manual_seed(11)
    x = torch.zeros(2, length, width)
    x[..., 0] = torch.arange(1.0, length + 1)  # tells positions apart, as powers would
    x[..., 1] = torch.arange(1.0, length + 1) ** 2
    with torch.no_grad():
        first = layer(x)
        after = torch.rand(4)  # what is drawn outside afterwards agrees again
        layer.eval()
        quiet = layer(x)
    return {"heads": first.unflatten(-1, (num_heads, head_dim)), "after": after, "quiet": quiet}


def dropped_outside(ctx: RankContext, width: int, inner: int) -> Tensor:
    """A block with dropout behind attention and MLP, on a replicated stream: the output of each rank."""
    case = Case(way="block", width=width, inner=inner, num_heads=4, exact=False)
    whole = case.build()
    assert isinstance(whole, blocks.Block)
    whole.dropout.p = 0.5
    layer = built(ctx, case, whole)
    layer.train()
    torch.manual_seed(11)
    with torch.no_grad():
        out: Tensor = layer(case.inputs(0))
    return out


# -- operators ---------------------------------------------------------------------------------------------------------


def operator(ctx: RankContext, name: str, own: Tensor, given: Tensor, *, strided: bool = False) -> dict[str, Tensor]:
    """One operator forward and backward on this rank's own integers, with a gradient that it is `given`.

    With `strided` neither its input nor the gradient of its output lies in one piece in memory.
    """
    assert ctx.impl is not None
    x = own.clone().requires_grad_()
    out = ctx.impl.call(
        name, tensor=strided_like(x * 1.0) if strided else x * 1.0, group=None, rank=ctx.rank, world_size=ctx.world_size
    )
    given = given if given.shape == out.shape else torch.ones_like(out)  # a wrong shape is a result to be judged
    out.backward(strided_like(given) if strided else given)
    assert x.grad is not None
    return {"output": out.detach(), "gradient": x.grad}


def strided_like(tensor: Tensor) -> Tensor:
    """The same numbers, in every second place of their memory."""
    wide = torch.stack([tensor, torch.full_like(tensor, 77.0)], -1)
    return wide[..., 0]


def operand(rank: int, name: str, world_size: int) -> Tensor:
    """The input of an operator on one rank. [2, 3, 2N]"""
    generator = torch.Generator().manual_seed(rank if name in ("reduce_from_region", "gather_from_region") else 99)
    return torch.randint(-4, 5, (2, 3, 2 * world_size), generator=generator).float()


def gradient(rank: int, shape: tuple[int, ...], *, common: bool = False) -> Tensor:
    """The gradient that an operator's output gets on one rank."""
    generator = torch.Generator().manual_seed(50 + (0 if common else rank))
    return torch.randint(-4, 5, shape, generator=generator).float()
