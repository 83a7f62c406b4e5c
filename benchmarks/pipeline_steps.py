"""A training step of an executed 1F1B pipeline: the reference's against torch's, on the same stages."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import pipeline_programs as programs
from benchmarks.measure import Ratio, benchmark, interleaved
from fixtures.world.server import Server
from fixtures.world.world import World

RANKS = 4
STEPS = 3


@benchmark("pipeline-steps")
def pipeline_step() -> Iterator[Ratio]:
    """Forward and backward of 8 microbatches through 4 stages of 2.6 M parameters, 1F1B, untraced."""
    with Server.start() as server, World(RANKS, server, trace=False) as world:

        def step(pipeline: str) -> float:
            return float(world.run(programs.PIPELINES[pipeline], STEPS, deadline_s=120.0).values[0])

        ours, theirs = interleaved(lambda: step("reference"), lambda: step("torch"), repeat=5)
    yield Ratio(
        name="pipeline-steps.1f1b",
        value=ours / theirs,
        unit="times the time",
        against=f"torch Schedule1F1B ({theirs * 1e3:.0f} ms)",
        target="<= 1.3",
    )
