"""The sharded stages of the reference against torch's, and what weighing a model of 70e9 parameters takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import torch

from benchmarks import programs
from benchmarks.measure import Ratio, benchmark, interleaved
from fixtures.weighing import PLAIN, Recipe
from fixtures.world.server import Server
from fixtures.world.world import World

RANKS = 4
STEPS = 3
SHARDED = Recipe(stage="3", dtype=torch.bfloat16, mixed=True)
UNSHARDED = Recipe(stage=PLAIN, dtype=torch.bfloat16)


@benchmark("zero")
def sharded_stages() -> Iterator[Ratio]:
    """Of a 10 M parameter model on 4 ranks, untraced: a step under ZeRO-1, and forward and backward under ZeRO-3."""
    with Server.start() as server, World(RANKS, server, trace=False) as world:

        def seconds(program: Callable[..., float], whose: str) -> float:
            return float(world.run(program, whose, STEPS, deadline_s=120.0).values[0])

        for name, program, peer in (
            ("zero1-step", programs.zero1_step, "ZeroRedundancyOptimizer with DistributedDataParallel"),
            ("zero3-forward-backward", programs.fully_sharded_pass, "fully_shard"),
        ):
            ours, theirs = interleaved(
                lambda: seconds(program, "reference"),  # noqa: B023  called within this turn of the loop
                lambda: seconds(program, "torch"),  # noqa: B023
                repeat=5,
            )
            yield Ratio(
                name=f"zero.{name}",
                value=ours / theirs,
                unit="times the time",
                against=f"torch {peer} ({theirs * 1e3:.0f} ms)",
                target="<= 1.5",
            )


@benchmark("weighing")
def weighing_70b() -> Iterator[Ratio]:
    """Weighing the reference's ZeRO-3 under mixed precision on Llama-3-70B at N = 8, against the same unsharded."""
    with Server.start() as server, World(1, server, impl="reference", bare=True, trace=False) as world:

        def weigh(recipe: Recipe) -> tuple[float, float]:
            outcomes = world.run(programs.weigh_70b, dataclasses.asdict(recipe), 8, deadline_s=240.0)
            took_s, peak_gb = outcomes.values[0]
            return float(took_s), float(peak_gb)

        took_s, peak_gb = weigh(SHARDED)
        plain_s, _ = weigh(UNSHARDED)
    yield Ratio(name="weighing.70b-seconds", value=took_s, unit="s", against="nothing", target="<= 60")
    yield Ratio(name="weighing.70b-memory", value=peak_gb, unit="GB at the peak", against="nothing", target="<= 2")
    yield Ratio(
        name="weighing.70b-vs-unsharded",
        value=took_s / plain_s,
        unit="times the time",
        against=f"the same shape and AdamW alone ({plain_s:.1f} s)",
    )
