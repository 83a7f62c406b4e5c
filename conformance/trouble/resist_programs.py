"""Rank programs that put a block into the situation of a failure mode and report what became of it. No pytest.

What is right is decided in ``test_resists``.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from conformance.asks import asks_for
from conformance.loop import programs as loop
from conformance.loop.programs import Rows, Values
from conformance.loop.worker_programs import numbers
from conformance.strategies.programs import INSIDE, window
from fixtures import models
from fixtures.world.context import RankContext
from impls.normalise import Wrapped
from impls.pipelines import pipeline, refusals

RATE = 0.0625
Shapes = Sequence[Sequence[int]]
Weights = Sequence[Sequence[Tensor]]  # of this rank, by step or microbatch: coefficients of a `models.Bag`


# -- missing-broadcast -------------------------------------------------------------------------------------------------


def begin_apart(
    ctx: RankContext, model: str, seed: int, batches: loop.OwnBatches, *, scale: float
) -> dict[str, Values]:
    """Weights of this rank's own, wrapped and trained: the module's state before and after wrapping, and at the end."""
    module = models.build(model, seed)
    before = loop.state(module)
    built = loop.replica(ctx, module)
    wrapped = loop.state(built.module)
    _descend(built, batches, scale)
    return {"before": before, "wrapped": wrapped, "trained": loop.parameters(built.module)}


def _descend(built: Any, batches: loop.OwnBatches, scale: float) -> None:
    optimizer = torch.optim.SGD(built.module.parameters(), lr=RATE)
    loss = partial(models.weighted, scale=scale)
    for own in batches:
        optimizer.zero_grad()
        for x, target in own:
            loss(built(x), target).backward()  # type: ignore[no-untyped-call]
        built.finish(optimizer)
        optimizer.step()


# -- sum-without-divide ------------------------------------------------------------------------------------------------


def train_equal(ctx: RankContext, batches: loop.OwnBatches, *, scale: float) -> Values:
    """Equal weights on all ranks, some steps of SGD at `RATE`: the parameters."""
    built = loop.replica(ctx, models.build("mlp", 1))
    _descend(built, batches, scale)
    return loop.parameters(built.module)


# -- shared-shuffle-seed -----------------------------------------------------------------------------------------------


def slices_under_one_seed(ctx: RankContext, steps: int, batch_size: int) -> list[list[int]]:
    """The rows that this rank takes in each step, with all generators seeded as on every other rank."""
    assert ctx.impl is not None
    random.seed(0)
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"rank": ctx.rank, "world_size": ctx.world_size, "batch_size": batch_size}
    return [numbers(ctx.impl.call("batch_slice", step=step, **sizes)) for step in range(steps)]


# -- unused-parameter-deadlock -----------------------------------------------------------------------------------------


def steps_with(
    ctx: RankContext, shapes: Shapes, used_by_step: Sequence[Sequence[bool]], weights: Weights
) -> list[Values]:
    """Gradients of a `models.Bag` after each step, in which this rank uses what ``used_by_step`` says.

    A wrapper that has torch's flag for this is given it.
    """
    flag = "find_unused_parameters"
    options = {flag: True} if asks_for(ctx.impl, "DataParallel", flag) else {}
    built = loop.replica(ctx, models.Bag(shapes, [False] * len(shapes)), **options)
    found = []
    for used, of_step in zip(used_by_step, weights, strict=True):
        built.module.zero_grad(set_to_none=True)
        built(models.packed(of_step, used)).backward()
        built.finish()
        found.append(loop.gradients(built.module))
    return found


# -- slow-accumulation -------------------------------------------------------------------------------------------------


def accumulate(ctx: RankContext, shapes: Shapes, weights: Weights) -> dict[str, Any]:
    """One step of a `models.Bag`, a microbatch for each of the weights; all but the last are deferred as it offers."""
    built = loop.replica(ctx, models.Bag(shapes, [False] * len(shapes)))
    ctx.mark("step-begin", "0")
    with _deferred(built):
        ctx.mark(f"{INSIDE}-begin")
        for early in weights[:-1]:
            built(models.packed(early)).backward()
        ctx.mark(f"{INSIDE}-end")
    loss = built(models.packed(weights[-1]))
    with ctx.window(window(0)):
        loss.backward()
        ctx.mark("backward-end")
        built.finish()
    ctx.mark("step-end", "0")
    return {
        "gradients": loop.gradients(built.module),
        "gradient_bytes": sum(parameter.nbytes for parameter in built.module.parameters()),
        "num_parameters": len(shapes),
        "dtypes": ["float32"],
    }


def _deferred(built: Any) -> contextlib.AbstractContextManager[None]:
    """`no_sync()` where there is one; a reduction that is a call of its own is deferred by not calling it."""
    if isinstance(built, Wrapped) and built.has_no_sync:
        return built.no_sync()
    return contextlib.nullcontext()


def offers_no_sync(ctx: RankContext) -> bool:
    """Whether what the implementation wraps a module in has a `no_sync()`."""
    built = loop.replica(ctx, models.Bag([[1]], [False]))
    return isinstance(built, Wrapped) and built.has_no_sync


# -- pipeline-send-send ------------------------------------------------------------------------------------------------

FEATURES = 4
NUM_ROWS = 2


def stage_of(number: int) -> nn.Module:
    """A stage whose weights only its number decides."""
    return models.fill(nn.Linear(FEATURES, FEATURES), 70 + number, real=True)


def pipeline_data(num_microbatches: int) -> list[Rows]:
    """Inputs and targets of each microbatch."""
    numbers_of = range(num_microbatches)
    return [(models.rows(NUM_ROWS, m, real=True), models.rows(NUM_ROWS, 500 + m, real=True)) for m in numbers_of]


def pipeline_step(ctx: RankContext, schedule: str, num_microbatches: int) -> Values:
    """A step of the implementation's pipeline over one stage for each rank: this stage's gradients."""
    assert ctx.impl is not None
    stage, data = stage_of(ctx.rank), pipeline_data(num_microbatches)
    with refusals(f"a pipeline of {ctx.world_size} stages under {schedule}"):
        driver = pipeline(
            ctx.impl,
            [stage],
            nn.functional.mse_loss,
            schedule=schedule,
            rank=ctx.rank,
            world_size=ctx.world_size,
        )
        driver.step([x for x, _ in data], [target for _, target in data])
    return loop.gradients(stage)
