"""What lesson 76 observes: a collective between threads over a mesh of queues, its bytes, and gloo's own result.

The implementation's mesh and its collectives are used where it has them, the reference's where it has not. Each end of
the mesh is wrapped in one that counts what is sent through it. Prints nothing.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from fixtures.world.context import RankContext
from fixtures.world.outcome import Outcomes
from impls.contract import ENTRIES
from impls.handover import NotProvided, arguments
from impls.loading import Implementation, load
from impls.normalise import flat_tensor, joined, one_tensor
from lessons.counting import CountingEnd

Run = Callable[..., Outcomes]  # program, world_size, *arguments, like Subject.run
IDLE_S = 5.0  # nothing sent and nothing taken for so long, by threads that do both in microseconds: they are stuck
ITEM_BYTES = torch.float32.itemsize


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """One collective. `passes`: how often a tensor of T bytes goes around; in a tree, how often it goes through."""

    name: str
    told: str
    formula: str
    passes: int
    is_tree: bool = False
    gathers: bool = False  # T is the result, N times the input

    def tensor_bytes(self, world_size: int, numel: int) -> int:
        """T."""
        return numel * ITEM_BYTES * (world_size if self.gathers else 1)

    def total(self, world_size: int, numel: int) -> int:
        """Bytes that all ranks send together; a tree may send more than these."""
        share = self.tensor_bytes(world_size, numel) * (world_size - 1)
        return self.passes * share

    def on_one(self, world_size: int, numel: int) -> float:
        """What the formula says of one rank: each of a ring, the busiest of a tree."""
        if self.is_tree:
            return self.tensor_bytes(world_size, numel) * (world_size - 1).bit_length()
        return self.total(world_size, numel) / world_size


PRIMITIVES = (
    Primitive(name="ring_allreduce", told="ring all-reduce", formula="2T(N-1)/N", passes=2),
    Primitive(name="tree_allreduce", told="tree all-reduce", formula="<= T ceil(log2 N)", passes=2, is_tree=True),
    Primitive(name="ring_allgather", told="ring all-gather", formula="T(N-1)/N", passes=1, gathers=True),
    Primitive(name="ring_reduce_scatter", told="ring reduce-scatter", formula="T(N-1)/N", passes=1),
    Primitive(name="tree_broadcast", told="tree broadcast", formula="<= T ceil(log2 N)", passes=1, is_tree=True),
)
BY_NAME: Mapping[str, Primitive] = {primitive.name: primitive for primitive in PRIMITIVES}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One primitive as it ran. `trouble` says why it has no results; `skipped` why it was not run at all."""

    primitive: Primitive
    world_size: int
    numel: int
    own_mesh: bool = False
    own_function: bool = False
    sent_bytes: Sequence[int] = ()
    results: Sequence[Tensor] = ()
    gloo: Sequence[Tensor] = ()
    trouble: str = ""
    skipped: str = ""


def observe(on_ranks: Run, name: str, world_size: int, numel: int) -> Row:
    """Run the primitive between threads of one process, and gloo's own on as many processes."""
    primitive = BY_NAME[name]
    found = on_ranks(over_queues, 1, name, world_size, numel).values[0]
    if found["skipped"]:
        return Row(primitive=primitive, world_size=world_size, numel=numel, skipped=found["skipped"])
    gloo = on_ranks(over_gloo, world_size, name, numel).values
    return Row(primitive=primitive, world_size=world_size, numel=numel, gloo=gloo, **found)


def pattern(numel: int, rank: int) -> Tensor:
    """Small integers that differ between elements and ranks: sums of eight are exact in any order. [numel]"""
    return ((torch.arange(numel) * 5 + rank * 3) % 7).float()


# -- on a mesh of queues -----------------------------------------------------------------------------------------------


def over_queues(ctx: RankContext, name: str, world_size: int, numel: int) -> dict[str, Any]:
    """The primitive between threads that play the ranks: results and bytes by rank, or what came between."""
    assert ctx.impl is not None
    mesh_impl, impl = _provider(ctx.impl, "queue_mesh"), _provider(ctx.impl, name)
    whose = {"own_mesh": mesh_impl is ctx.impl, "own_function": impl is ctx.impl}
    if not _takes_a_mesh(impl, name):
        return {"skipped": f"its {name} takes no mesh: it runs over torch.distributed, not between threads"}
    made = mesh_impl.call("queue_mesh", world_size=world_size)
    ends = [CountingEnd(made[rank], rank, world_size) for rank in range(world_size)]
    results: dict[int, Tensor] = {}
    errors: dict[int, str] = {}
    missing: list[str] = []

    def play(rank: int) -> None:
        try:
            tensor = pattern(numel, rank)
            given: dict[str, Any] = {"mesh": ends[rank], "rank": rank, "world_size": world_size, "tensor": tensor}
            result = impl.call(name, **given, src=world_size - 1)
            read = flat_tensor if name in ("ring_allgather", "ring_reduce_scatter") else one_tensor
            results[rank] = read(result, tensor, name).clone()
            ends[rank].flush()
        except NotProvided as error:
            missing.append(str(error))
        except BaseException as error:
            errors[rank] = f"{type(error).__name__}: {error}"

    stuck = _played(play, ends)
    if missing:
        return {"skipped": missing[0]}
    trouble = [f"rank {rank} raised {error}" for rank, error in sorted(errors.items())]
    trouble += [f"rank {rank} waits for a message from rank {ends[rank].waits_for}" for rank in stuck]
    return {
        **whose,
        "skipped": "",
        "trouble": "; ".join(trouble),
        "sent_bytes": [end.sent_bytes for end in ends],
        "results": [] if trouble else [results[rank] for rank in range(world_size)],
    }


def _played(play: Callable[[int], None], ends: Sequence[CountingEnd]) -> list[int]:
    """One thread for each rank, until all are done or nothing moves any more; the ranks that are not done."""
    threads = [threading.Thread(target=play, args=(rank,), daemon=True) for rank in range(len(ends))]
    for thread in threads:
        thread.start()
    calls, since = -1, time.monotonic()
    while any(thread.is_alive() for thread in threads):
        next(thread for thread in threads if thread.is_alive()).join(0.02)
        now = sum(end.num_calls for end in ends)
        if now != calls:
            calls, since = now, time.monotonic()
        elif time.monotonic() - since > IDLE_S:
            break
    return [rank for rank, thread in enumerate(threads) if thread.is_alive()]


def _provider(impl: Implementation, name: str) -> Implementation:
    return impl if impl.reason(name) is None else load("reference")


def _takes_a_mesh(impl: Implementation, name: str) -> bool:
    mesh = object()
    offered = {"mesh": mesh, "rank": 0, "world_size": 1, "tensor": torch.zeros(1), "src": 0}
    args, kwargs = arguments(impl.get(name), ENTRIES[name], offered)
    return any(value is mesh for value in (*args, *kwargs.values()))


# -- on gloo -----------------------------------------------------------------------------------------------------------


def over_gloo(ctx: RankContext, name: str, numel: int) -> Tensor:
    """The same by torch.distributed on gloo; this rank's result, flat."""
    tensor = pattern(numel, ctx.rank)
    if name.endswith("allreduce"):
        dist.all_reduce(tensor)
    elif name == "tree_broadcast":
        dist.broadcast(tensor, src=ctx.world_size - 1)
    elif name == "ring_allgather":
        parts = [torch.empty_like(tensor) for _ in range(ctx.world_size)]
        dist.all_gather(parts, tensor)
        tensor = torch.cat(parts)
    else:
        chunks = list(tensor.tensor_split(ctx.world_size))
        own = torch.empty_like(chunks[ctx.rank])
        dist.reduce_scatter(own, chunks)
        tensor = own
    return tensor


def differing(row: Row) -> tuple[int, int] | None:
    """The rank and the element at which the mesh and gloo first differ; None when they do not.

    The parts of a scattered sum are joined first: how it is cut is for the implementation to say.
    """
    if row.primitive.name == "ring_reduce_scatter":
        pairs = [(joined(row.results, row.numel), joined(row.gloo, row.numel))]
    else:
        pairs = [(ours.flatten(), theirs) for ours, theirs in zip(row.results, row.gloo, strict=True)]
    for rank, (ours, theirs) in enumerate(pairs):
        if ours.shape != theirs.shape:
            return rank, min(ours.numel(), theirs.numel())
        if not torch.equal(ours, theirs):
            return rank, int((ours != theirs).nonzero()[0])
    return None
