"""A training step of the reference DataParallel against torch's DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import programs
from benchmarks.measure import Ratio, benchmark, interleaved
from fixtures.world.server import Server
from fixtures.world.world import World

RANKS = 4
STEPS = 3


@benchmark("data-parallel")
def data_parallel_step() -> Iterator[Ratio]:
    """Forward, backward and SGD step of a 10 M parameter model on 4 ranks, untraced, 25 MB buckets."""
    with Server.start() as server, World(RANKS, server, trace=False) as world:

        def step(wrapper: str) -> float:
            outcomes = world.run(programs.training_step, wrapper, STEPS, deadline_s=120.0)
            return float(outcomes.values[0])

        ours, theirs = interleaved(lambda: step("reference"), lambda: step("torch"), repeat=5)
    yield Ratio(
        name="data-parallel.step",
        value=ours / theirs,
        unit="times the time",
        against=f"torch DistributedDataParallel ({theirs * 1e3:.0f} ms)",
        target="<= 1.3",
    )
