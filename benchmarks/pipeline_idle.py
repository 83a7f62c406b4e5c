"""How long the ranks of an executed pipeline idle, beside what the model of its schedule says.

Stages are sleep of a fixed length, so that the ranks need no cores of their own; the rest is messages and Python.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Ratio, benchmark
from fixtures.world.server import Server
from fixtures.world.world import World
from impls.reference.pipeline.names import named
from impls.reference.pipeline.simulate import simulate
from lessons.pipeline_cells import idle_share, measured
from lessons.pipeline_work import record

RANKS = 4
MICROBATCHES = (4, 8, 16, 32)
UNIT_S = 0.05  # F, I and W each
POINTS = 3.0  # of a hundred, that the measured share may lie above the model's on a quiet machine


@benchmark("pipeline-idle")
def idle_of_executed_schedules() -> Iterator[Ratio]:
    """GPipe, 1F1B and ZB-H1 of the reference on 4 ranks, with more and more microbatches, untraced."""
    with Server.start() as server, World(RANKS, server, impl="reference", trace=False) as world:
        for name in ("gpipe", "1f1b", "zb_h1"):
            for count in MICROBATCHES:
                schedule = named(name, RANKS, count, 1)
                stages = [schedule.stages_of(rank) for rank in range(RANKS)]
                durations_s = dict.fromkeys("FIW", UNIT_S)
                seen = world.run(record, name, stages, count, durations_s, deadline_s=120.0).values
                model = 100 * float(simulate(schedule).bubble_share())
                yield Ratio(
                    name=f"pipeline-idle.{name}-{RANKS}x{count}",
                    value=100 * idle_share(measured(seen, schedule, UNIT_S), RANKS),
                    unit="% idle",
                    against=f"the model's {model:.1f} %",
                    target=f"<= {model + POINTS:.1f}",
                )
