"""What runs in the ranks: one collective of the implementation, called once, with what a judge needs to see of it.

Every program flushes the mesh once the result is copied, as the contract does not ask that of an implementation.
No pytest here, and no judgement: values, the input's memory afterwards, and the trace go to the other side as they are.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from conformance.asks import asks_for
from conformance.collectives.layouts import lay_out
from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.normalise import flat_tensor, one_tensor

CALL = "call"  # the wire window
BEGIN, END = "call-begin", "call-end"  # the marks between which the trace is the implementation's
LATE_S = 0.03  # how much later than the others the last rank comes

SUMS = ("ring_allreduce", "tree_allreduce", "all_reduce", "ring_reduce_scatter", "reduce_scatter", "shard_gradients")
_GATHERS, _SCATTERS = ("ring_allgather", "all_gather"), ("ring_reduce_scatter", "reduce_scatter", "shard_gradients")
_WHOLE = {  # how a result is read: as one tensor of the input's shape, or as a flat one
    **dict.fromkeys(("ring_allreduce", "tree_allreduce", "all_reduce", "tree_broadcast", "broadcast"), one_tensor),
    **dict.fromkeys(("ring_allgather", "all_gather", "ring_reduce_scatter", "reduce_scatter"), flat_tensor),
    **dict.fromkeys(("shard_gradients", "gather_parameters"), flat_tensor),
}


def call(ctx: RankContext, name: str, tensor: Tensor, **more: Any) -> Tensor:
    """Call the implementation's ``name`` on this rank with all that the contract offers; the tensor it gave or left."""
    assert ctx.impl is not None
    offered = {"rank": ctx.rank, "world_size": ctx.world_size, "tensor": tensor, "group": dist.group.WORLD, **more}
    given = more.get("local_grad", tensor)  # where a function that returns None has left its result
    if asks_for(ctx.impl, name, "out") and "local_grad" not in more:
        given = offered["out"] = torch.empty(_size_of_result(ctx, name, tensor), dtype=tensor.dtype)
    if asks_for(ctx.impl, name, "chunks") and "local_grad" not in more:
        offered["chunks"] = [chunk.clone() for chunk in tensor.flatten().tensor_split(ctx.world_size)]
    result = ctx.impl.call(name, mesh=ctx.mesh(), **offered)
    read: Callable[..., Tensor] = _WHOLE[name]
    found = read(result, given, name)
    return _sum_of_mean(ctx, name, tensor.dtype, found) if ctx.impl.averages and name in SUMS else found


def _size_of_result(ctx: RankContext, name: str, tensor: Tensor) -> list[int]:
    if name in _GATHERS:
        return [ctx.world_size * tensor.numel()]
    return [len(tensor.flatten().tensor_split(ctx.world_size)[ctx.rank])] if name in _SCATTERS else list(tensor.shape)


def _sum_of_mean(ctx: RankContext, name: str, dtype: torch.dtype, mean: Tensor) -> Tensor:
    """The sum that a mean was made of, in its memory: an implementation whose table says that it averages."""
    if not (dtype.is_floating_point or dtype.is_complex):
        raise NotProvided(f"{name} averages, as the adapters table says: there is no mean of {dtype}")
    return mean.mul_(ctx.world_size)


def once(
    ctx: RankContext, name: str, own: Tensor, layout: str = "contiguous", src: int | None = None
) -> dict[str, Any]:
    """One call with the rank's own values; the result, and the whole memory in which the input lay."""
    memory, tensor = lay_out(own, layout)
    result = call(ctx, name, tensor, **({} if src is None else {"src": src})).clone()
    ctx.mesh().flush()
    return {"result": result, "memory": memory}


def twice(ctx: RankContext, name: str, own: Tensor, other: Tensor) -> list[Tensor]:
    """Two calls in a row with different tensors, as in two steps; both results, looked at after the second."""
    first = call(ctx, name, own.clone(), src=0)
    second = call(ctx, name, other.clone(), src=0)
    ctx.mesh().flush()
    return [first, second]


def late(ctx: RankContext, name: str, own: Tensor, late_rank: int, src: int = 0) -> Tensor:
    """One call that ``late_rank`` enters after all others have: their results cannot be there before it came."""
    tensor = own.clone()
    signs = [ctx.rendezvous_file() for _ in range(ctx.world_size)]
    if ctx.rank == late_rank:
        others = [sign for rank, sign in enumerate(signs) if rank != late_rank]
        _wait_for(others)
        time.sleep(LATE_S)  # they have said that they are at the call: let them get into it
    else:
        signs[ctx.rank].touch()
    result = call(ctx, name, tensor, src=src).clone()  # as it is at this moment
    ctx.mesh().flush()
    return result


def _wait_for(files: list[Path]) -> None:
    while not all(file.exists() for file in files):
        time.sleep(0.001)


_WHOLE_PERIODS = 7 * 2**14  # elements after which it begins again, so that long ones are made at once


def pattern(numel: int, shift: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Small integers that differ between elements, and ranks of their own ``shift``; sums of eight are exact."""
    period = ((torch.arange(min(numel, _WHOLE_PERIODS)) * 5 + shift) % 7).to(dtype)
    return period if numel <= len(period) else period.repeat(-(-numel // _WHOLE_PERIODS))[:numel]


def counted(ctx: RankContext, name: str, numel: int, shift: int) -> Tensor:
    """One call on ``pattern`` between two barriers, in a wire window and between two marks; gives its result.

    The barriers make the window whole: nothing of this call is on its way when it closes. They lie outside the marks;
    the last one is inside the window, with bytes that are known.
    """
    tensor = pattern(numel, shift)
    more = _chunked(ctx, tensor) if name == "shard_gradients" else {}
    dist.barrier()
    with ctx.window(CALL):
        ctx.mark(BEGIN)
        result = call(ctx, name, tensor, **more)
        ctx.mesh().flush()
        ctx.mark(END)
        dist.barrier()
    return result


PIECE_BYTES = 2**20


def digests(tensor: Tensor) -> list[str]:
    """A fingerprint of each MiB of a tensor of real numbers, so that large ones need not cross."""
    memory = tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data
    pieces = range(0, len(memory), PIECE_BYTES)
    return [hashlib.blake2b(memory[at : at + PIECE_BYTES], digest_size=8).hexdigest() for at in pieces]


def digested(ctx: RankContext, name: str, numel: int, shift: int) -> dict[str, Any]:
    """One call on ``pattern``; the number of elements of its result, and its digests."""
    result = call(ctx, name, pattern(numel, shift))
    found = {"numel": result.numel(), "digests": digests(result)}
    ctx.mesh().flush()
    return found


def sharded(ctx: RankContext, own: Tensor) -> dict[str, Any]:
    """ZeRO-1's gradient shard, offered in both forms: the tensor, or local_grad and the list of its chunks."""
    gradient = own.clone()
    shard = call(ctx, "shard_gradients", gradient, **_chunked(ctx, gradient))
    return {"result": shard, "memory": gradient}


def _chunked(ctx: RankContext, gradient: Tensor) -> dict[str, Any]:
    """The cheatsheet's two arguments: the list of the gradient's chunks, and where this rank's sum goes."""
    chunks = [chunk.clone() for chunk in gradient.flatten().tensor_split(ctx.world_size)]
    return {"chunks": chunks, "local_grad": torch.zeros_like(chunks[ctx.rank])}


def gathered(ctx: RankContext, own: Tensor, dtype: torch.dtype) -> dict[str, Any]:
    """ZeRO-1's way back: the parameters in their own dtype from the master shards of all ranks."""
    shard = own.clone()
    ctx.mark(BEGIN)
    result = call(ctx, "gather_parameters", shard, master_shard=shard, dtype=dtype)
    ctx.mark(END)
    return {"result": result, "memory": shard}
