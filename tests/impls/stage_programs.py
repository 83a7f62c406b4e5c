"""Programs that drive the ZeRO stages of hand-ins."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from fixtures import models
from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.stages import stage
from impls.whole import Listener

STEPS = 3


def train(ctx: RankContext, name: str, optimizer: str = "SGD", **options: Any) -> dict[str, Any]:
    """A few steps on rows of this rank's own, and what the driver found out on the way."""
    assert ctx.impl is not None
    trainer = stage(
        ctx.impl, name, models.build("uneven", 1, real=True), optimizer_cls=getattr(torch.optim, optimizer), **options
    )
    for step in range(STEPS):
        trainer.zero_grad()
        trainer.backward(trainer(models.rows(4, 10 * step + ctx.rank, real=True)).square().mean())
        trainer.finish()
        trainer.average()
        trainer.step()
    return {
        "parameters": trainer.full_parameters(models.rows(4, 99, real=True)),
        "wants_mean": trainer.wants_mean,
        "chooses_optimizer": trainer.chooses_optimizer,
    }


def alone(ctx: RankContext, world_size: int, optimizer: str = "SGD", **options: Any) -> dict[str, Tensor]:
    """The same training in one process, on the rows of all ranks."""
    module = models.build("uneven", 1, real=True)
    inner = getattr(torch.optim, optimizer)(module.parameters(), **options)
    for step in range(STEPS):
        inner.zero_grad()
        rows = torch.cat([models.rows(4, 10 * step + rank, real=True) for rank in range(world_size)])
        module(rows).square().mean().backward()
        inner.step()
    return {name: parameter.detach() for name, parameter in module.named_parameters()}


def why_not(ctx: RankContext, name: str, **options: Any) -> str:
    """The reason for which a stage cannot be driven with these options."""
    assert ctx.impl is not None
    try:
        stage(ctx.impl, name, models.Mlp(), **options)
    except NotProvided as reason:
        return str(reason)
    return ""


class _Squares(nn.Module):
    """A layer whose weight a wrapper puts there in pieces, and a parameter that no forward pass uses."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2, bias=False)
        self.idle = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        return out


def hear(ctx: RankContext) -> dict[str, Any]:
    """What is heard of a layer whose weight is whole in its forward pass only, and whose forward others wrap."""
    module = _Squares()
    listener = Listener(module)
    whole, inner = module.layer.weight.detach().clone(), module.layer.forward
    module.layer.weight = nn.Parameter(torch.zeros(1))

    def gathered(x: Tensor) -> Tensor:
        module.layer.weight.data = whole
        try:
            out: Tensor = inner(x)
        finally:
            module.layer.weight.data = torch.zeros(1)
        return out

    module.layer.forward = gathered
    return {"heard": listener.hear(lambda: module(torch.ones(1, 2))), "whole": whole, "names": sorted(listener.names)}
