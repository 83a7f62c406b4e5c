"""Programs with ZeRO-3 that look at what is held, what is sent, and what is saved and loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from fixtures.witness import memory
from fixtures.world.context import RankContext
from impls.mesh import GlooMesh
from impls.reference import fully_shard
from impls.reference.fsdp import FullySharded
from tests.impls.fsdp_training import (
    Menagerie,
    difference,
    layers,
    loss_of,
    menagerie,
    optimizer_of,
    train,
    train_alone,
)

# -- memory and traffic ------------------------------------------------------------------------------------------------


def whole_bytes(model: FullySharded) -> list[int]:
    """Bytes of each unit that is here whole, or on its way."""
    sizes = [sum(flat.whole.untyped_storage().nbytes() for flat in unit.flats) for unit in model._units]
    return [size for size in sizes if size]


def most_whole(ctx: RankContext, options: dict[str, Any]) -> tuple[int, int, int]:
    """How many units are whole at one time: in the second step's forward, in its backward, and after it."""
    model = fully_shard(layers(), **options)
    counts: list[int] = []

    def count(*_: Any) -> None:
        counts.append(len(whole_bytes(model)))

    model(torch.ones(1, 8)).sum().backward()  # in which the order is learnt
    for layer in model.module:
        layer.register_forward_hook(count, prepend=True)
        layer.register_full_backward_hook(count)
    out = model(torch.ones(1, 8, requires_grad=True))
    in_forward = max(counts)
    counts.clear()
    out.sum().backward()
    return in_forward, max(counts), len(whole_bytes(model))


def at_rest(ctx: RankContext, train: bool) -> tuple[dict[str, int], int, int]:
    """Bytes by category after forward and backward, or after a forward without gradients; those whole; P's bytes."""
    module = menagerie()
    kept = list(module.parameters())  # as an optimizer that was built too early would
    total = sum(parameter.nbytes for parameter in kept)
    gc.collect()
    model = fully_shard(module)
    if train:
        loss = loss_of(model, ctx.rank)  # the graph is alive while we look
        loss.backward(retain_graph=True)
    else:
        with torch.no_grad():
            loss = loss_of(model, ctx.rank)
    reading = memory.weigh("at rest", module=model, kept=kept)
    return dict(reading.categories), sum(whole_bytes(model)), total


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Bytes that this rank's all-gathers bring to it from others, and that it pushes."""
    count = {"gathered": 0, "num_gathers": 0, "pushed": 0}
    gather, push = dist.all_gather, GlooMesh.push

    def counting_gather(parts: list[Tensor], shard: Tensor, **kwargs: Any) -> Any:
        count["gathered"] += (len(parts) - 1) * shard.nbytes
        count["num_gathers"] += 1
        return gather(parts, shard, **kwargs)

    def counting_push(mesh: GlooMesh, dst: int, tensor: Tensor) -> None:
        count["pushed"] += tensor.nbytes
        push(mesh, dst, tensor)

    dist.all_gather, GlooMesh.push = counting_gather, counting_push  # type: ignore[method-assign]
    try:
        yield count
    finally:
        dist.all_gather, GlooMesh.push = gather, push  # type: ignore[method-assign]


def traffic(ctx: RankContext, options: dict[str, Any], steps: int) -> tuple[dict[str, int], int]:
    """Of so many steps; and the bytes T of the parameters, none of which is padding on two or four ranks."""
    model = fully_shard(layers(), **options)
    with counted() as count:
        for _ in range(steps):
            model(torch.ones(1, 8)).sum().backward()
    return count, ctx.world_size * sum(parameter.nbytes for parameter in model.parameters())


# -- state -------------------------------------------------------------------------------------------------------------


def saved(ctx: RankContext, optimizer: str) -> dict[str, Any]:
    """The whole state after two steps."""
    model = fully_shard(menagerie())
    inner = optimizer_of(model, optimizer)
    train(model, inner, ctx.rank, range(2))
    inner.param_groups[1]["lr"] = 0.03  # as a scheduler would
    return model.full_state(inner)


def resumed(ctx: RankContext, optimizer: str, state: dict[str, Any], data_ranks: int) -> float:
    """Two more steps of what `data_ranks` ranks began, here on another number, which all compute the same mean."""
    alone = menagerie()
    inner = optimizer_of(alone, optimizer)
    train_alone(alone, inner, data_ranks, range(2))
    inner.param_groups[1]["lr"] = 0.03
    train_alone(alone, inner, data_ranks, range(2, 4))

    torch.manual_seed(9)
    model = fully_shard(Menagerie())
    inner = optimizer_of(model, optimizer)
    model.load_full_state(state, inner)
    assert model.module.counter == state["buffers"]["counter"]
    for step in range(2, 4):
        inner.zero_grad()
        for rank in range(data_ranks):
            for microbatch in range(1 + step % 2):
                (loss_of(model, rank, microbatch) / data_ranks).backward()
        inner.step()
    return difference(model.full_parameters(), alone)


def loaded_into_one_group(ctx: RankContext, state: dict[str, Any]) -> None:
    model = fully_shard(menagerie())
    model.load_full_state(state, torch.optim.SGD(model.parameters(), lr=0.1))
