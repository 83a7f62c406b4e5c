"""Random programs for several ranks, drawn as data: correct by construction, or with one operation left out.

Every rank draws the same list of actions from the seed and does its part of each, so that all operations meet: nothing
here can lock, however slow a rank is. ``without`` names the one action that one rank leaves out.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

SIZES = (1, 64, 5_000, 400_000)
NUM_ACTIONS = 25


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing that the ranks of ``group`` do together, or one of them alone."""

    kind: str
    group: int = 0  # index into the groups; 0 is everyone
    ranks: tuple[int, ...] = ()  # who takes part
    root: int = 0  # first of a pair, root, or the rank that is slow
    other: int = 0  # second of a pair
    numel: int = 1
    seconds: float = 0.0
    is_async: bool = False


def draw(seed: int, world_size: int) -> tuple[list[tuple[int, ...]], list[Action]]:
    """The groups, everyone's first, and the actions in the order in which every rank goes through them."""
    rng = random.Random(seed)
    everyone = tuple(range(world_size))
    groups = [everyone, *(tuple(sorted(rng.sample(everyone, 2))) for _ in range(2))]
    return groups, [_action(rng, groups, everyone) for _ in range(NUM_ACTIONS)]


def _action(rng: random.Random, groups: Sequence[tuple[int, ...]], everyone: tuple[int, ...]) -> Action:
    kind = rng.choice(
        ["all_reduce", "all_reduce", "all_gather", "broadcast", "barrier", "send", "ring", "sleep", "compute", "thread"]
    )
    group = rng.randrange(len(groups))
    if kind in ("sleep", "compute", "thread"):
        return Action(kind=kind, root=rng.choice(everyone), seconds=rng.choice([0.001, 0.01, 0.06, 0.2]))
    if kind == "send":
        first, second = rng.sample(everyone, 2)
        return Action(kind=kind, ranks=(first, second), root=first, other=second, numel=rng.choice(SIZES))
    if kind == "ring":
        return Action(kind=kind, ranks=everyone, numel=rng.choice(SIZES))
    members = groups[group]
    return Action(
        kind=kind,
        group=group,
        ranks=members,
        root=rng.choice(members),
        numel=rng.choice(SIZES),
        is_async=rng.random() < 0.4,
    )


def program(seed: int, *, without: tuple[int, int] | None = None) -> Callable[[int, int], None]:
    """The program of a seed. ``without``: the rank that leaves something out, and the number of the action."""

    def run(rank: int, world_size: int) -> None:
        groups, actions = draw(seed, world_size)
        handles = [dist.new_group(list(ranks)) if number else None for number, ranks in enumerate(groups)]
        pending: list[Any] = []
        for number, action in enumerate(actions):
            if (rank, number) != without:
                _act(action, rank, world_size, handles, pending)
        for work in pending:
            work.wait()
        if without is None:
            dist.barrier()

    return run


def _act(action: Action, rank: int, world_size: int, handles: Sequence[Any], pending: list[Any]) -> None:
    if action.kind in ("sleep", "compute", "thread"):
        if rank == action.root:
            _be_slow(action)
        return
    if rank not in action.ranks:
        return
    tensor, group = torch.ones(action.numel), handles[action.group]
    work = None
    match action.kind:
        case "all_reduce":
            work = dist.all_reduce(tensor, group=group, async_op=action.is_async)
        case "all_gather":
            parts = [torch.empty_like(tensor) for _ in action.ranks]
            work = dist.all_gather(parts, tensor, group=group, async_op=action.is_async)
        case "broadcast":
            work = dist.broadcast(tensor, action.root, group=group, async_op=action.is_async)
        case "barrier":
            dist.barrier(group=group)
        case "send" if rank == action.root:
            dist.send(tensor, action.other)
        case "send":
            dist.recv(tensor, action.root)
        case "ring":
            sending = dist.isend(tensor, (rank + 1) % world_size)
            dist.recv(torch.empty_like(tensor), (rank - 1) % world_size)
            sending.wait()
    if work is not None:
        pending.append(work)
        if len(pending) > 3:
            oldest = pending.pop(0)
            oldest.get_future().wait() if action.numel == 1 else oldest.wait()


def _be_slow(action: Action) -> None:
    if action.kind == "sleep":
        time.sleep(action.seconds)
    elif action.kind == "thread":
        _in_a_thread(action.seconds)
    else:
        end = time.monotonic() + action.seconds
        while time.monotonic() < end:
            torch.ones(32, 32) @ torch.ones(32, 32)


def _in_a_thread(seconds: float) -> None:
    import threading

    thread = threading.Thread(target=time.sleep, args=(seconds,))
    thread.start()
    thread.join()
