"""Rank programs of dynamic loss scaling, where one rank's gradient is not finite. Imports no pytest.

Each rank's gradients are its own: as in a sharded training, where no rank has the others', and no inf reaches all of
them by itself. Where ``step()`` does not average, the weights are the rank's own too, as shards are.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from conformance.zero.plan import Plan
from conformance.zero.value_programs import begin
from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.stages import Trainer

UNIT = 2.0**-8  # of gradients: 65536 times a few of them is a number of float16
SHAPES = [[4], [3]]


def row(rank: int, bad: bool) -> Tensor:
    """What a rank's gradient is, in float32, before any averaging. [1, 7]"""
    found = UNIT * torch.arange(1.0, 8.0).reshape(1, 7) * (rank + 1)
    if bad:
        found[0, 2] = math.inf
    return found


def steps(ctx: RankContext, kinds: list[str], lr: float, extras: dict[str, Any], bad_rank: int) -> dict[str, Any]:
    """Train on "good" and "bad" rows; weights, and the loss scale where it can be read, at first and after each."""
    plan = Plan(
        data=[], shapes=SHAPES, real=False, dtype=torch.float16, loss="weighted", options={"lr": lr}, extras=extras
    )
    try:
        averages_itself = not begin(ctx, "mixed", plan, plan.build()).wants_mean
        module = plan.build(plan.seed if averages_itself else plan.seed + ctx.rank)
        trainer = begin(ctx, "mixed", plan, module)
    except NotProvided as reason:
        return {"missing": str(reason)}
    seen = [_seen(trainer)]
    for kind in kinds:
        x = row(ctx.rank, kind == "bad" and ctx.rank == bad_rank)
        trainer.backward(plan.loss_of(trainer, x, torch.ones(1, 1)))
        trainer.step()
        trainer.zero_grad()
        seen.append(_seen(trainer))
    return {
        "averages_itself": averages_itself,
        "weights": [weights for weights, _ in seen],
        "scales": [scale for _, scale in seen],
    }


def _seen(trainer: Trainer) -> tuple[Tensor, float | None]:
    weights = torch.cat([p.detach().clone() for p in trainer.module.parameters()])
    scale = getattr(trainer.optimizer, "loss_scale", None)
    return weights, None if scale is None or callable(scale) else float(scale)
