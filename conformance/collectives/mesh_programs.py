"""What runs in one rank process about a mesh of queues: threads that play the ranks, and a clock that can be wound.

No pytest here. A thread that is stuck stays behind as a daemon and is named; the world is replaced after that.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from conformance.collectives.virtual_time import VirtualTime
from fixtures.world.context import RankContext
from impls.contract import ENTRIES
from impls.handover import arguments
from impls.normalise import one_tensor

STUCK_S = 5.0  # how long threads of a correct mesh may take for what they do in milliseconds
SHORT_S = 0.2


class _Threads:
    """One thread for each rank; results or errors by rank, and the ranks that are still at it in the end."""

    def __init__(self, bodies: Sequence[Callable[[], Any]]) -> None:
        self.results: dict[int, Any] = {}
        self.errors: dict[int, str] = {}
        threads = [
            threading.Thread(target=self._run, args=(rank, body), daemon=True) for rank, body in enumerate(bodies)
        ]
        for thread in threads:
            thread.start()
        until = time.monotonic() + STUCK_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        self.stuck = [rank for rank, thread in enumerate(threads) if thread.is_alive()]

    def _run(self, rank: int, body: Callable[[], Any]) -> None:
        try:
            self.results[rank] = body()
        except BaseException as error:
            self.errors[rank] = f"{type(error).__name__}: {error}"

    def as_data(self) -> dict[str, Any]:
        return {"results": self.results, "errors": self.errors, "stuck": self.stuck}


def make(ctx: RankContext, world_size: int, **options: Any) -> list[Any]:
    """The implementation's mesh of queues, one end for each rank."""
    assert ctx.impl is not None
    ends = ctx.impl.call("queue_mesh", world_size=world_size, **options)
    try:
        return [ends[rank] for rank in range(world_size)]
    except (TypeError, LookupError) as error:
        raise TypeError(
            f"queue_mesh({world_size}) returned {type(ends).__name__}, not one end for each rank: {error}"
        ) from None


def plain_ring(mesh: Any, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """The ring all-reduce with ``send(dst, tensor)`` and ``recv(src)`` only; every rank sends first."""
    chunks = list(tensor.flatten().clone().tensor_split(world_size))
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    for step in range(world_size - 1):
        mesh.send(right, chunks[(rank - step) % world_size])
        chunks[(rank - step - 1) % world_size] += mesh.recv(left)
    for step in range(world_size - 1):
        mesh.send(right, chunks[(rank + 1 - step) % world_size])
        chunks[(rank - step) % world_size] = mesh.recv(left)
    return torch.cat(chunks).view(tensor.shape)


def ring_over_queues(ctx: RankContext, inputs: list[Tensor], own: bool) -> dict[str, Any]:
    """All-reduce between threads over the mesh of queues: the implementation's ring (``own``), or ours."""
    world_size = len(inputs)
    ends = make(ctx, world_size)

    def body(rank: int) -> Tensor:
        tensor = inputs[rank].clone()
        if not own:
            return plain_ring(ends[rank], rank, world_size, tensor)
        assert ctx.impl is not None
        result = ctx.impl.call("ring_allreduce", mesh=ends[rank], rank=rank, world_size=world_size, tensor=tensor)
        return one_tensor(result, tensor, "ring_allreduce").clone()

    return _Threads([lambda rank=rank: body(rank) for rank in range(world_size)]).as_data()  # type: ignore[misc]


def all_send_first(ctx: RankContext, world_size: int, rounds: int) -> dict[str, Any]:
    """Neighbours in a ring who all send both ways before they receive: what came from the left, round by round."""
    ends = make(ctx, world_size)

    def body(rank: int) -> list[float]:
        mesh, left, right = ends[rank], (rank - 1) % world_size, (rank + 1) % world_size
        came = []
        for number in range(rounds):
            mesh.send(right, torch.tensor([float(10 * number + rank)]))
            mesh.send(left, torch.tensor([-1.0]))
            here = {side: float(mesh.recv(side)[0]) for side in (left, right)} if left != right else {}
            came.append(here[left] if here else max(float(mesh.recv(left)[0]) for _ in range(2)))
        return came

    return _Threads([lambda rank=rank: body(rank) for rank in range(world_size)]).as_data()  # type: ignore[misc]


def ring_takes_a_mesh(ctx: RankContext) -> bool:
    """Whether the implementation's ring is written for a mesh; one for torch.distributed cannot run between threads."""
    assert ctx.impl is not None
    ring = ctx.impl.get("ring_allreduce")
    if ring is None:
        return False
    mesh = object()
    offered = {"mesh": mesh, "rank": 0, "world_size": 1, "tensor": torch.zeros(1)}
    args, kwargs = arguments(ring, ENTRIES["ring_allreduce"], offered)
    return any(value is mesh for value in (*args, *kwargs.values()))


def mail(ctx: RankContext) -> dict[str, Any]:
    """Letters between three ranks, all sent before any is taken: what arrives, in which order, and from whom."""
    ends = make(ctx, 3)

    def body() -> dict[str, list[list[float]]]:
        reused = torch.tensor([1.0, 2.0])
        for end, first in ((ends[0], 1.0), (ends[2], 100.0)):
            for number in range(4):
                reused.copy_(torch.tensor([first + number, first]))
                end.send(1, reused)
        reused.fill_(-1.0)
        ends[1].send(0, torch.tensor([7.0]))
        return {
            "from 2": [ends[1].recv(2).tolist() for _ in range(4)],
            "from 0": [ends[1].recv(0).tolist() for _ in range(4)],
            "to 0": [ends[0].recv(1).tolist()],
        }

    return _Threads([body]).as_data()


def constant(ctx: RankContext) -> Any:
    """The implementation's RECV_TIMEOUT_S."""
    assert ctx.impl is not None
    value = ctx.impl.get("RECV_TIMEOUT_S")
    return value if isinstance(value, int | float) else repr(value)


def silent_peer(ctx: RankContext) -> dict[str, Any]:
    """A receive from a rank that sends nothing, on a clock that jumps over waits: how long it was, how it ended."""
    clock = VirtualTime()
    with clock:
        ends = make(ctx, 3)
        threads = _Threads([lambda: clock.measure(lambda: ends[1].recv(2))])
    return {**threads.as_data(), "waits": clock.waits}


def short_limit(ctx: RankContext) -> dict[str, Any]:
    """The same on a real clock, with a mesh made for a short limit, where ``queue_mesh`` takes one."""
    assert ctx.impl is not None
    made = ctx.impl.get("queue_mesh")
    names = ("timeout_s", "timeout", "recv_timeout_s", "recv_timeout")
    taken = [name for name in names if name in _parameters(made)]
    if not taken:
        return {"takes": None}
    ends = ctx.impl.invoke(made, 3, **{taken[0]: SHORT_S})
    threads = _Threads([lambda: ends[1].recv(2)])
    return {**threads.as_data(), "takes": taken[0]}


def _parameters(target: Any) -> list[str]:
    try:
        return list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return []
