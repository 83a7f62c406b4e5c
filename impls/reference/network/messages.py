"""When the messages of a collective are there: every rank's sends and receives, timed on the links of a cluster.

A rank goes through its list in order. A send leaves at once, after those before it; a receive waits. A rank sends one
message at a time, and receives one (one port, full duplex); who comes first to a busy receiver is taken first.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import defaultdict, deque
from collections.abc import Sequence

import numpy as np

from impls.reference.network.links import Cluster


@dataclasses.dataclass(frozen=True, slots=True)
class Send:
    """A message of so many bytes to rank `dst`. Messages between two ranks keep their order within a `stream`."""

    dst: int
    num_bytes: float
    stream: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Recv:
    """Wait for the next message of a stream from rank `src`."""

    src: int
    stream: int = 0


Program = Sequence[Send | Recv]  # of one rank


def replay(programs: Sequence[Program], cluster: Cluster, scale: float = 1.0) -> float:
    """Seconds until all ranks are done; `scale` multiplies the bytes of all messages.

    ValueError when a rank waits for what nobody sends.
    """
    return _Replay(programs, cluster, scale).run()


class _Replay:
    def __init__(self, programs: Sequence[Program], cluster: Cluster, scale: float) -> None:
        ranks = range(len(programs))
        self.programs, self.cluster, self.scale = programs, cluster, scale
        self.position = [0] * len(programs)
        self.clock = [0.0] * len(programs)  # when each rank came to where it is
        self.port_out = [0.0] * len(programs)
        self.port_in = [0.0] * len(programs)
        self.leaving: list[deque[tuple[Send, float]]] = [deque() for _ in ranks]  # with the time of the call
        self.arrived: defaultdict[tuple[int, int, int], deque[float]] = defaultdict(deque)
        self.heads: list[tuple[float, int]] = []  # when the first message of a rank's queue can leave

    def run(self) -> float:
        for rank in range(len(self.programs)):
            self._advance(rank)
        while self.heads:
            start, src = heapq.heappop(self.heads)
            send = self.leaving[src][0][0]
            if start < self.port_in[send.dst]:  # somebody came first
                heapq.heappush(self.heads, (self.port_in[send.dst], src))
                continue
            self.leaving[src].popleft()
            done = start + self.cluster.link(src, send.dst).message_s(send.num_bytes * self.scale)
            self.port_out[src] = self.port_in[send.dst] = done
            self.arrived[src, send.dst, send.stream].append(done)
            if self.leaving[src]:
                self._offer(src)
            self._advance(send.dst)
        for rank, program in enumerate(self.programs):
            if self.position[rank] < len(program):
                raise ValueError(f"rank {rank} waits for ever at its operation {self.position[rank]}")
        return max(*self.clock, *self.port_out, 0.0)

    def _advance(self, rank: int) -> None:
        """Go on to the next receive whose message has not been there yet."""
        program = self.programs[rank]
        while self.position[rank] < len(program):
            step = program[self.position[rank]]
            if isinstance(step, Send):
                self.leaving[rank].append((step, self.clock[rank]))
                if len(self.leaving[rank]) == 1:
                    self._offer(rank)
            else:
                letters = self.arrived[step.src, rank, step.stream]
                if not letters:
                    return
                self.clock[rank] = max(self.clock[rank], letters.popleft())
            self.position[rank] += 1

    def _offer(self, src: int) -> None:
        heapq.heappush(self.heads, (max(self.leaving[src][0][1], self.port_out[src]), src))


def replay_rotated(program: Program, world_size: int, cluster: Cluster, scale: float = 1.0) -> float:
    """`replay` where every rank does what rank 0 does, with all peers shifted by its number: a ring, for one.

    All ranks at once, so that thousands of them take a second. Ports: a rank receives from one other rank at a time.
    """
    ranks = np.arange(world_size)
    clock = np.zeros(world_size)
    port = np.zeros(world_size)
    arrived: defaultdict[tuple[int, int], deque[np.ndarray]] = defaultdict(deque)
    for step in program:
        if isinstance(step, Recv):
            clock = np.maximum(clock, arrived[step.src % world_size, step.stream].popleft())
            continue
        offset = step.dst % world_size
        port = np.maximum(clock, port) + _message_s(ranks, offset, world_size, cluster, step.num_bytes * scale)
        arrived[-offset % world_size, step.stream].append(np.roll(port, offset))  # by receiver
    return float(np.maximum(clock, port).max())


def _message_s(ranks: np.ndarray, offset: int, world_size: int, cluster: Cluster, num_bytes: float) -> np.ndarray:
    node, other = ranks // cluster.ranks_per_node, (ranks + offset) % world_size // cluster.ranks_per_node
    return np.where(node == other, cluster.inside.message_s(num_bytes), cluster.between.message_s(num_bytes))
