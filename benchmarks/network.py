"""Where ring and tree cross on this machine, beside the model of it, and how long the model takes for 4096 ranks."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.measure import Ratio, benchmark, interleaved, seconds
from benchmarks.network_programs import ALGORITHMS, all_reduce
from fixtures.world.server import Server
from fixtures.world.world import World
from impls.reference.collectives import ring_allreduce
from impls.reference.network.formulas import crossover_bytes, ring_time
from impls.reference.network.links import Cluster, Link
from impls.reference.network.messages import replay_rotated
from impls.reference.network.record import record, relative

RANKS = 4
KIB = 1024
SIZES = tuple(4 * KIB * 4**step for step in range(7))  # 4 KiB to 16 MiB
FLOAT = 4


def _times() -> dict[int, tuple[float, float]]:
    """Seconds of ring and tree by size, measured turn by turn."""
    found = {}
    with Server.start() as server, World(RANKS, server, trace=False) as world:
        for size in SIZES:
            number = max(1, 2**20 // size)

            ring, tree = (functools.partial(_slowest_rank, world, name, size, number) for name in ALGORITHMS)
            found[size] = interleaved(ring, tree, repeat=3)
    return found


def _slowest_rank(world: World, name: str, size: int, number: int) -> float:
    return max(float(value) for value in world.run(all_reduce, name, size // FLOAT, number).values)


def fitted(times: dict[int, tuple[float, float]]) -> Link:
    """The link that makes the ring as fast as it was at the smallest and at the largest size."""
    small, large = min(times), max(times)
    steps = 2 * (RANKS - 1)
    slope = max(1e-12, (times[large][0] - times[small][0]) / (large - small))
    latency_s = max(0.0, times[small][0] - slope * small) / steps
    return Link(latency_s=latency_s, bandwidth=steps / RANKS / slope)


def crossing(times: dict[int, tuple[float, float]]) -> float:
    """The smallest measured size from which on the ring is faster; NaN where it never is."""
    slower = [size for size, (ring, tree) in times.items() if ring >= tree]
    later = [size for size in times if size > max(slower, default=0)]
    return float(min(later, default=float("nan")))


@benchmark("network")
def ring_against_tree() -> Iterator[Ratio]:
    """Ring against tree by size over gloo on 4 ranks; where they cross, here and in the model; what the model costs."""
    times = _times()
    for size, (ring, tree) in times.items():
        yield Ratio(
            name=f"network.ring-against-tree-{size // KIB}KiB",
            value=ring / tree,
            unit="times the time",
            against=f"the tree ({tree * 1e3:.2f} ms)",
        )
    link = fitted(times)
    predicted = crossover_bytes(RANKS, link.latency_s, link.bandwidth)
    yield Ratio(
        name="network.crossover",
        value=crossing(times) / 1e6,
        unit="MB",
        against=f"the model: {predicted / 1e6:.3g} MB ({link.latency_s * 1e6:.0f} us, {link.bandwidth / 1e9:.2g} GB/s)",
    )
    yield Ratio(
        name="network.4096-ranks",
        value=seconds(_largest_ring, repeat=1),
        unit="s",
        against=f"{2 * 4095} messages of each rank, {ring_time(4096, 4096, 1e-5, 1e9) * 1e3:.1f} ms simulated",
    )


def _largest_ring() -> float:
    program = relative(record(ring_allreduce, 4096, 0, 4096), 0, 4096)
    return replay_rotated(program, 4096, Cluster.flat(Link(latency_s=1e-5, bandwidth=1e9)))
