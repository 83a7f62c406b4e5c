"""What passes between stages: activations on their way forward, gradients on their way back. Knows no autograd.

A **signal** goes from the rank that makes it to the one that takes it, or from hand to hand where both are the same.
No rank waits for its sends, so no schedule can lock because two ranks send to each other. What a peer sends is received
in the order in which its list of actions makes it, and put aside until its turn comes: both ends know the schedule.

On the wire each tensor is announced: a header tells shape and dtype, whether it wants a gradient back, and whether
another tensor follows. A gradient that nobody computed is an announcement with nothing behind it.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from impls.mesh import GlooMesh
from impls.reference.pipeline.actions import Action, Kind, Schedule

ABSENT, PLAIN, LEARNS = range(3)  # what an announcement says of its tensor


class Signal(NamedTuple):
    """What a stage needs for one microbatch: for F the activations before it, for B the gradients of its outputs."""

    kind: Kind
    stage: int  # that takes it
    microbatch: int

    def __str__(self) -> str:
        what = "activations into" if self.kind is Kind.FORWARD else "gradients of the outputs of"
        return f"{what} stage {self.stage}, microbatch {self.microbatch}"


def needed(schedule: Schedule, action: Action) -> Signal | None:
    """What `action` waits for; None for W and where a microbatch enters or has its loss."""
    if action.kind is Kind.FORWARD:
        return Signal(Kind.FORWARD, action.stage, action.microbatch) if action.stage > 0 else None
    at_loss = action.stage == schedule.num_stages - 1
    return None if at_loss or action.kind is Kind.WEIGHT else Signal(Kind.BACKWARD, action.stage, action.microbatch)


def made(schedule: Schedule, action: Action) -> Signal | None:
    """What `action` makes for another stage; None for W and at the ends."""
    if action.kind is Kind.FORWARD:
        last = action.stage == schedule.num_stages - 1
        return None if last else Signal(Kind.FORWARD, action.stage + 1, action.microbatch)
    if action.kind is Kind.WEIGHT or action.stage == 0:
        return None
    return Signal(Kind.BACKWARD, action.stage - 1, action.microbatch)


def taker(schedule: Schedule, signal: Signal) -> int:
    """The rank that a signal goes to."""
    return schedule.rank_of(signal.stage, signal.microbatch)


def maker(schedule: Schedule, signal: Signal) -> int:
    """The rank that a signal comes from."""
    neighbour = signal.stage - 1 if signal.kind is Kind.FORWARD else signal.stage + 1
    return schedule.rank_of(neighbour, signal.microbatch)


@functools.lru_cache(maxsize=64)
def arrivals(schedule: Schedule, src: int, dst: int) -> tuple[tuple[Signal, int], ...]:
    """What `src` makes for `dst`, in order, and with each how many signals of `dst` it must have taken before."""
    found = []
    num_taken = 0
    for action in itertools.chain.from_iterable(action.parts for action in schedule.actions(src)):
        need, give = needed(schedule, action), made(schedule, action)
        num_taken += need is not None and maker(schedule, need) == dst
        if give is not None and taker(schedule, give) == dst:
            found.append((give, num_taken))
    return tuple(found)


class Post:
    """One rank's end of all boundaries, for one step. `mesh` may be None where there is one rank."""

    def __init__(self, schedule: Schedule, rank: int, mesh: GlooMesh | None) -> None:
        self._schedule, self._rank, self._mesh = schedule, rank, mesh
        self._here: dict[Signal, list[Tensor | None]] = {}
        self._arriving = {src: deque(arrivals(schedule, src, rank)) for src in range(schedule.num_ranks) if src != rank}
        self._under_way: defaultdict[int, deque[int]] = defaultdict(deque)  # messages of each signal, by destination
        self._num_taken: defaultdict[int, int] = defaultdict(int)
        for src in self._arriving:
            self._expect(src)

    def give(self, signal: Signal, tensors: Sequence[Tensor | None]) -> None:
        """Start a signal on its way and return. Its memory is left alone until `flush`, or until it has been taken."""
        dst = taker(self._schedule, signal)
        if dst == self._rank:
            self._here[signal] = [None if t is None else t.detach().requires_grad_(t.requires_grad) for t in tensors]
        else:
            self._under_way[dst].append(send(self._links(), dst, tensors))

    def take(self, signal: Signal) -> list[Tensor | None]:
        """Wait for a signal: new leaves, which want a gradient where the tensors that were given do."""
        src = maker(self._schedule, signal)
        while signal not in self._here:
            if not self._arriving.get(src):
                raise ValueError(
                    f"rank {self._rank} waits for the {signal}, which {self._schedule.name} has rank {src} make "
                    "nowhere, or later on this rank: validate the schedule before it runs"
                )
            self._receive(src)
        return self._here.pop(signal)

    def flush(self) -> None:
        """Wait until the peers have taken everything."""
        if self._mesh is not None:
            self._mesh.flush()

    def _receive(self, src: int) -> None:
        """The next signal from `src`. That it was made tells which of ours have been taken: these are let go of."""
        signal, num_taken = self._arriving[src].popleft()
        self._here[signal] = recv(self._links(), src)
        self._expect(src)
        while self._num_taken[src] < num_taken:
            self._num_taken[src] += 1
            self._links().settle(src, self._under_way[src].popleft())

    def _expect(self, src: int) -> None:
        """Let the next announcement arrive while this rank computes."""
        if self._arriving[src]:
            self._links().expect(src)

    def _links(self) -> GlooMesh:
        assert self._mesh is not None
        return self._mesh


def send(mesh: GlooMesh, dst: int, tensors: Sequence[Tensor | None]) -> int:
    """Send the tensors of one signal without waiting; the number of messages that it takes."""
    num_messages = 0
    for place, tensor in enumerate(tensors, start=1):
        more = place < len(tensors)
        if tensor is None:
            mesh.send(dst, torch.empty(0, more, ABSENT))
            num_messages += 1
        else:
            state = LEARNS if tensor.requires_grad else PLAIN
            mesh.send(dst, torch.empty(0, more, state, *tensor.shape, dtype=tensor.dtype))  # empty: a header only
            mesh.push(dst, tensor)
            num_messages += 2
    return num_messages


def recv(mesh: GlooMesh, src: int) -> list[Tensor | None]:
    """Wait for the tensors of one signal."""
    tensors: list[Tensor | None] = []
    more = 1
    while more:
        announced = mesh.recv(src)
        _, more, state, *shape = announced.shape
        if state == ABSENT:
            tensors.append(None)
        else:
            tensor = mesh.pull(src, torch.empty(shape, dtype=announced.dtype))
            tensors.append(tensor.requires_grad_(state == LEARNS))
    return tensors
