"""Rank programs that watch an executed pipeline from outside: what it sends, and what it holds. Imports no pytest."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from conformance.pipeline.case import placement
from fixtures.world.context import RankContext
from impls.pipelines import Driver, pipeline, refusals

BEFORE, IN_STEP, AT_REST = "before", "in a step", "at rest"


def window(step: int) -> str:
    """The name of the wire window around a step."""
    return f"step {step}"


class _Chain(nn.Sequential):
    """Layers of one width, each with its bias."""

    def __init__(self, num_layers: int, width: int) -> None:
        super().__init__(*(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(num_layers)))


class _Table(nn.Module):
    """A square weight before the layers, or behind them, that the stage at the other end may have too."""

    def __init__(self, num_layers: int, width: int, *, behind: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.eye(width))
        self.layers = _Chain(num_layers, width)
        self.behind = behind

    def forward(self, x: Tensor) -> Tensor:
        """[rows, width] to the same."""
        return functional.linear(self.layers(x), self.table) if self.behind else self.layers(x @ self.table)


def traffic(
    ctx: RankContext, schedule: str, *, num_layers: int, width: int, rows: int, micro: int, steps: int, tied: bool
) -> dict[str, Any]:
    """Some steps of equal stages, each inside a wire window; with `tied`, the two ends share a weight."""
    places = placement(schedule, ctx.world_size)
    ends = {0: False, places.num_stages - 1: True} if tied else {}
    own = places.stages_of(ctx.rank)
    stages: list[nn.Module] = [
        _Table(num_layers, width, behind=ends[stage]) if stage in ends else _Chain(num_layers, width) for stage in own
    ]
    copies = {stage.table: [0, ctx.world_size - 1] for stage in stages if isinstance(stage, _Table)}
    driver = _driver(ctx, stages, schedule, copies if tied else None)
    inputs, targets = _data(rows, width, micro)
    for index in range(steps):
        for stage in stages:
            stage.zero_grad()
        with ctx.window(window(index)):
            _step(driver, inputs, targets)
    shared = stages if places.num_directions > 1 else []
    return {
        "activation_bytes": inputs[0].nbytes,
        "model_bytes": sum(p.nbytes for stage in stages for p in stage.parameters()),
        "shared_bytes": sum(p.nbytes for p in {*copies, *(p for stage in shared for p in stage.parameters())}),
    }


def memory(ctx: RankContext, schedule: str, *, width: int, rows: int, micro: int) -> dict[str, int]:
    """Two steps with Adam on this rank's own stage, which has one layer more than that of the rank before."""
    gc.collect()
    ctx.weigh(BEFORE, others=True)
    stage = _Chain(ctx.rank + 1, width)
    optimizer = torch.optim.Adam(stage.parameters())
    driver = _driver(ctx, [stage], schedule, None)
    inputs, targets = _data(rows, width, micro)
    stop = _at_forward(stage, 2 * micro, lambda: ctx.weigh(IN_STEP, module=stage, optimizer=optimizer, others=True))
    for _ in range(2):
        optimizer.zero_grad(set_to_none=True)
        _step(driver, inputs, targets)
        optimizer.step()
    stop()
    gc.collect()
    ctx.weigh(AT_REST, module=stage, optimizer=optimizer, others=True)
    parameters = list(stage.parameters())
    layer = sum(p.nbytes for p in parameters) // (ctx.rank + 1)
    return {"layer_bytes": layer, "num_parameters": len(parameters), "activation_bytes": inputs[0].nbytes}


def _at_forward(stage: nn.Module, number: int, then: Callable[[], None]) -> Callable[[], None]:
    """Call `then` in the stage's forward of this number; returns the way to stop."""
    calls = iter(range(1, number + 1))

    def hook(module: nn.Module, args: Any) -> None:
        if next(calls, 0) == number:
            then()

    return stage.register_forward_pre_hook(hook).remove


def _driver(ctx: RankContext, stages: list[nn.Module], schedule: str, tied: Any) -> Driver:
    assert ctx.impl is not None
    return pipeline(
        ctx.impl,
        stages,
        functional.mse_loss,
        schedule=schedule,
        rank=ctx.rank,
        world_size=ctx.world_size,
        tied=tied,
    )


def _step(driver: Driver, inputs: list[Tensor], targets: list[Tensor]) -> None:
    with refusals(f"a step of {len(inputs)} microbatches"):
        driver.step(inputs, targets)


def _data(rows: int, width: int, micro: int) -> tuple[list[Tensor], list[Tensor]]:
    generator = torch.Generator().manual_seed(7)
    inputs, targets = (
        [torch.randn(rows, width, generator=generator) for _ in range(micro)] for _ in ("inputs", "targets")
    )
    return inputs, targets
