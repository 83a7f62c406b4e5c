"""How long an implementation's own messages take on links with a latency and a bandwidth: where ring and tree cross.

Time is counted in latencies and bytes in latency x bandwidth, so that one figure serves every link. The closed forms
beside it are of Thakur, Rabenseifner and Gropp 2005, section 4.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from conformance.checks import Judge
from conformance.collectives import traffic
from conformance.collectives.costs import Count, log2_ceil
from fixtures.world.outcome import Operation
from impls.reference.network.links import Cluster, Link
from impls.reference.network.messages import Program, Recv, Send, replay

UNIT = Cluster.flat(Link(latency_s=1.0, bandwidth=1.0))
FEWEST, MOST = 1e-3, 1e6  # latency x bandwidth: where a crossover is looked for
MB = 1e6
DRAWN_PER_DECADE = 4  # sizes in a picture, from 0.1 to 100 latency x bandwidth


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One collective of an implementation as its trace at N ranks shows it, to be timed at any size."""

    name: str
    world_size: int
    programs: Sequence[Program]
    num_bytes: int  # of the tensor in the trace
    barriers: int

    def latencies(self, size: float) -> float:
        """The time of a tensor of `size` x latency x bandwidth bytes, in latencies."""
        waited = self.barriers * log2_ceil(self.world_size)
        return replay(self.programs, UNIT, scale=size / self.num_bytes) + waited


def timed(judge: Judge, counted: Count) -> Timed:
    """What the ranks of one counted call sent and received, in their order.

    In a ring over blocking sends some ranks receive before they send. Links carry both at once, so that it is timed as
    the same ring in steps: which half comes first is no choice of another algorithm.
    """
    streams: dict[tuple[str, int], int] = {}
    programs = [_program(traffic.of_call(outcome), streams, counted.empty_tensors) for outcome in counted.outcomes]
    try:
        if counted.name.startswith("ring") and counted.rounds(2 * (counted.world_size - 1)):
            programs = [_sends_first(program) for program in programs]
        found = Timed(
            name=counted.name,
            world_size=counted.world_size,
            programs=programs,
            num_bytes=counted.input_bytes,
            barriers=max(sent.barriers for sent in counted.sent),
        )
        found.latencies(1.0)
    except ValueError as error:
        judge.inconclusive(f"the trace does not show who waits for whom: {error}")
    return found


def _program(
    operations: Sequence[Operation], streams: dict[tuple[str, int], int], empty_tensors: int
) -> list[Send | Recv]:
    """Sends at the time of their issue, receives at that of their completion; headers travel with their payload."""
    payload = {operation.seq for operation in traffic.sent(operations, empty_tensors=empty_tensors).messages}
    moments: list[tuple[int, Send | Recv]] = []
    for op in operations:
        stream = streams.setdefault((op.group, op.tag), len(streams))
        if op.kind == "send" and op.seq in payload:
            moments.append((op.issued_ns, Send(op.peer, op.num_bytes, stream)))
        elif op.kind == "recv" and op.done_ns and not traffic.is_header(op):
            moments.append((op.done_ns, Recv(op.peer, stream)))
    return [step for _, step in sorted(moments, key=lambda moment: moment[0])]


def _sends_first(program: Sequence[Send | Recv]) -> list[Send | Recv]:
    """The same steps, each with its send before its receive: the n-th of both are one step."""
    sends = [step for step in program if isinstance(step, Send)]
    receives = [step for step in program if isinstance(step, Recv)]
    pairs = itertools.zip_longest(sends, receives)
    return [half for pair in pairs for half in pair if half is not None]


def ring_latencies(world_size: int, size: float) -> float:
    """2(N-1) messages of a share each."""
    return 2 * (world_size - 1) * (1 + size / world_size)


def tree_latencies(world_size: int, size: float) -> float:
    """2 ceil(log2 N) messages of everything."""
    return 2 * log2_ceil(world_size) * (1 + size)


def crossover(world_size: int) -> float:
    """The size, in latency x bandwidth, at which a ring and a binomial tree take equally long; N >= 4."""
    depth = log2_ceil(world_size)
    return (world_size - 1 - depth) / (depth - (world_size - 1) / world_size)


def curve(own: Timed) -> dict[str, Any]:
    """Evidence data for a picture: its time and its closed form, over sizes on both sides of the crossover."""
    is_ring = own.name.startswith("ring")
    closed = ring_latencies if is_ring else tree_latencies
    sizes = [10 ** (exponent / DRAWN_PER_DECADE) for exponent in range(-DRAWN_PER_DECADE, 2 * DRAWN_PER_DECADE + 1)]
    return {
        "plot": "ring-time" if is_ring else "tree-time",
        "label": f"N = {own.world_size}",
        "points": [
            {"x": size, "observed": own.latencies(size), "formula": closed(own.world_size, size)} for size in sizes
        ],
    }


def own_crossover(own: Timed) -> float | None:
    """Where the other algorithm begins to win, or to lose, against this one; None where one is faster at all sizes."""
    closed = tree_latencies if own.name.startswith("ring") else ring_latencies

    def ahead(size: float) -> bool:
        return own.latencies(size) < closed(own.world_size, size)

    low, high = FEWEST, MOST
    if ahead(low) == ahead(high):
        return None
    at_first = ahead(low)
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if ahead(middle) == at_first else (low, middle)
    return low
