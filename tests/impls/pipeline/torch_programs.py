"""Programs with torch's pipelines that the tests run on ranks."""

from __future__ import annotations

from torch import Tensor

from fixtures.world.context import RankContext
from impls.torch_native.pipelining import stages_of, train_step
from tests.impls.pipeline import execute_programs as programs


def run(
    ctx: RankContext, schedule: str, model: str, sizes: list[int], num_chunks: int, steps: int
) -> tuple[dict[int, list[Tensor | None]], list[Tensor]]:
    """Gradients by stage after `steps` steps without clearing, and the losses of the last."""
    own = stages_of(schedule, ctx.rank, ctx.world_size, num_chunks)
    held = {stage: programs.stages(model, ctx.world_size * num_chunks)[stage] for stage in own}
    inputs, targets = programs.data(sizes)
    losses: list[Tensor] = []
    for _ in range(steps):
        losses = train_step(list(held.values()), inputs, targets, programs.loss, schedule)
    return {stage: [p.grad for p in module.parameters()] for stage, module in held.items()}, losses
