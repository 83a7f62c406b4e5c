"""Programs with tensor parallelism that the tests of `impls` run on ranks."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fixtures import blocks
from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.parallel import Options, parallel
from impls.reference.tensor_parallel import regions
from impls.reference.tensor_parallel.blocks import ParallelAttention, ParallelMLP, tensor_parallel
from impls.reference.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding
from impls.reference.tensor_parallel.randomness import own_randomness

WIDTH, INNER = 8, 12


def region(ctx: RankContext, name: str) -> dict[str, Tensor]:
    """An operator of `regions` on [2, 6, 12]; each rank's input and output gradient are its rank plus one."""
    size = dist.get_world_size()
    shape = {"gather_from_region": (2, 6, 12 // size), "gather_sequence": (2, 6 // size, 12)}.get(name, (2, 6, 12))
    x = torch.full(shape, ctx.rank + 1.0, requires_grad=True)
    out: Tensor = getattr(regions, name)(x)
    out.backward(torch.full_like(out, ctx.rank + 1.0))
    assert x.grad is not None
    return {"out": out.detach(), "gradient": x.grad}


def own_memory(ctx: RankContext) -> dict[str, bool]:
    """Whether shards, and results of sums, share memory with what they were made of."""
    linear = nn.Linear(WIDTH, INNER)
    layer = ColumnParallelLinear(linear)
    x = torch.ones(3)
    total = regions.all_reduce(x, None)
    return {
        "shard": layer.weight.untyped_storage().nbytes() == layer.weight.nbytes,
        "input": torch.equal(x, torch.ones(3)),
        "sum": torch.equal(total, torch.full((3,), float(ctx.world_size))),
    }


def refused(ctx: RankContext) -> dict[str, str]:
    """What is said to sizes that the ranks cannot share."""
    linear = nn.Linear(7, 7)
    tries: dict[str, Any] = {
        "column": lambda: ColumnParallelLinear(linear),
        "row": lambda: RowParallelLinear(linear),
        "embedding": lambda: VocabParallelEmbedding(nn.Embedding(7, 3)),
        "mlp": lambda: ParallelMLP(blocks.Mlp(4, 7)),
        "heads": lambda: ParallelAttention(blocks.Attention(12, 3)),
        "sequence": lambda: ColumnParallelLinear(nn.Linear(4, 4), sequence_parallel=True)(torch.ones(1, 3, 4)).sum(),
    }
    said = {}
    for name, attempt in tries.items():
        try:
            out = attempt()
            if isinstance(out, Tensor):
                out.backward()
            said[name] = ""
        except ValueError as error:
            said[name] = str(error)
    return said


def numbers(ctx: RankContext) -> dict[str, Tensor]:
    """What is drawn before, inside and after a region of this rank's own randomness."""
    torch.manual_seed(3)
    before = torch.rand(3)
    with own_randomness():
        inside = torch.rand(3)
    return {"before": before, "inside": inside, "after": torch.rand(3)}


def in_place(ctx: RankContext) -> dict[str, bool]:
    """Which modules of a block are others after `tensor_parallel`, and which learn."""
    block = blocks.Block(WIDTH, INNER, 4)
    block.attention.q.requires_grad_(False)
    norm, attention = block.norm1, block.attention
    made = tensor_parallel(block)
    return {
        "same": made is block,
        "norm": made.norm1 is norm,
        "attention": made.attention is attention,
        "frozen": not made.attention.q.weight.requires_grad,
    }


def form(ctx: RankContext, name: str) -> dict[str, Any]:
    """In which form an implementation has a layer, and what it takes and gives."""
    assert ctx.impl is not None
    others = {"VocabParallelEmbedding": nn.Embedding(INNER, WIDTH), "ParallelMLP": blocks.Mlp(WIDTH, INNER)}
    whole = others.get(name, nn.Linear(WIDTH, INNER))
    layer = parallel(ctx.impl, name, whole)
    return {
        "form": layer.form,
        "shapes": [tuple(p.shape) for p in layer.shards().values()],
        "takes_whole": layer.takes_whole_input,
    }


def refused_form(ctx: RankContext, name: str) -> str:
    """Why a layer is not provided in the form that it has."""
    try:
        form(ctx, name)
    except NotProvided as error:
        return str(error)
    return ""


def without_option(ctx: RankContext, option: str) -> str:
    """Why a layer is not provided with an option that it does not ask for."""
    assert ctx.impl is not None
    try:
        parallel(ctx.impl, "ColumnParallelLinear", nn.Linear(WIDTH, INNER), Options(**{option: True}))
    except NotProvided as error:
        return str(error)
    return ""
