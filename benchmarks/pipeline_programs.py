"""The pipelines that the benchmark runs in the ranks: one stage on each, microbatches of equal size."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from benchmarks.programs import timed
from fixtures.world.context import RankContext
from impls.reference.pipeline.execute import train_step

WIDTH, LAYERS = 512, 10  # 10 x 512 x 512 weights on each stage
MICROBATCHES, ROWS = 8, 64


def _stage(rank: int) -> nn.Module:
    torch.manual_seed(rank)
    return nn.Sequential(*(layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())))


def _data() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    inputs, targets = torch.randn(2, MICROBATCHES * ROWS, WIDTH)
    return inputs, targets


def reference(ctx: RankContext, number: int) -> float:
    """Seconds of one step of the reference."""
    stage, (inputs, targets) = _stage(ctx.rank), _data()

    def step() -> None:
        stage.zero_grad()
        train_step(stage, inputs.split(ROWS), targets.split(ROWS), nn.functional.mse_loss, "1f1b")

    step()
    return timed(step, number)


def torch_1f1b(ctx: RankContext, number: int) -> float:
    """Seconds of one step of torch's, shapes inferred beforehand."""
    stage, (inputs, targets) = _stage(ctx.rank), _data()
    pipeline = PipelineStage(stage, ctx.rank, ctx.world_size, torch.device("cpu"))
    schedule = Schedule1F1B(pipeline, MICROBATCHES, loss_fn=nn.functional.mse_loss)

    def step() -> None:
        stage.zero_grad()
        if pipeline.is_first:
            schedule.step(inputs)
        elif pipeline.is_last:
            schedule.step(target=targets, losses=[], return_outputs=False)
        else:
            schedule.step()

    step()
    return timed(step, number)


PIPELINES: Mapping[str, Callable[[RankContext, int], float]] = {"reference": reference, "torch": torch_1f1b}
