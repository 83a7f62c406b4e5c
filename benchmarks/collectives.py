"""The reference ring against gloo's own all-reduce, and one property-test example against a bare ring."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import programs
from benchmarks.measure import Ratio, benchmark, interleaved
from fixtures.world.server import Server
from fixtures.world.world import World

RANKS = 4
FLOATS_PER_MIB = 2**20 // 4


@benchmark("ring")
def ring_bandwidth() -> Iterator[Ratio]:
    """Bandwidth of the reference ring over the gloo mesh against ``dist.all_reduce``, 4 ranks, untraced."""
    with Server.start() as server, World(RANKS, server, trace=False) as world:
        for mib, target in ((1, ""), (16, ">= 0.7"), (64, ">= 0.7")):
            numel, number = mib * FLOATS_PER_MIB, max(1, 16 // mib)

            def measured(program: object, numel: int = numel, number: int = number) -> float:
                return float(world.run(program, numel, number).values[0])  # type: ignore[arg-type]

            ours, theirs = interleaved(lambda m=measured: m(programs.ring), lambda m=measured: m(programs.library))
            yield Ratio(
                name=f"ring.bandwidth-{mib}MiB",
                value=theirs / ours,
                unit="of bandwidth",
                against=f"dist.all_reduce ({theirs * 1e3:.1f} ms)",
                target=target,
            )
