"""Rank programs of dynamic loss scaling, where one rank's gradient is not finite. Imports no pytest.

Each rank's gradients are its own: as in a sharded training, where no rank has the others', and no inf reaches all of
them by itself. Where ``step()`` does not average, the weights are the rank's own too, as shards are.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from conformance.zero.plan import Plan
from conformance.zero.saved_states import loaded, state_of
from conformance.zero.value_programs import begin
from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.stages import Trainer

UNIT = 2.0**-8  # of gradients: 65536 times a few of them is a number of float16
SHAPES = [[4], [3]]


def row(rank: int, kind: str = "good") -> Tensor:
    """What a rank's gradient is, in float32, before any averaging; "inf" and "nan" have one element of it. [1, 7]"""
    found = UNIT * torch.arange(1.0, 8.0).reshape(1, 7) * (rank + 1)
    if kind != "good":
        found[0, 2] = float(kind)
    return found


def rows(kinds: Sequence[str], rank: int, bad_rank: int) -> list[Tensor | None]:
    """What `rank` meets in steps of these kinds: only `bad_rank` an "inf" or a "nan", and nothing in a "resume"."""
    known = {"resume": None, "good": row(rank)}
    return [known[kind] if kind in known else row(rank, kind if rank == bad_rank else "good") for kind in kinds]


def steps(ctx: RankContext, own: list[Tensor | None], lr: float, extras: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train on these rows; weights, and the loss scale where it can be read, at first and after each.

    `seed` is that of the rank's own weights; without a row it saves and loads instead of a step.
    """
    plan = Plan(
        data=[], shapes=SHAPES, real=False, dtype=torch.float16, loss="weighted", options={"lr": lr}, extras=extras
    )
    try:
        averages_itself = not begin(ctx, "mixed", plan, plan.build()).wants_mean
        trainer = begin(ctx, "mixed", plan, plan.build(plan.seed if averages_itself else seed))
        seen = [_seen(trainer)]
        for x in own:
            if x is None:
                trainer = _resumed(ctx, plan, trainer)
            else:
                _step(trainer, plan, x)
            seen.append(_seen(trainer))
    except NotProvided as reason:
        return {"missing": str(reason)}
    return {
        "averages_itself": averages_itself,
        "weights": [weights for weights, _ in seen],
        "scales": [scale for _, scale in seen],
    }


def _step(trainer: Trainer, plan: Plan, x: Tensor) -> None:
    trainer.backward(plan.loss_of(trainer, x, torch.ones(1, 1)))
    trainer.step()
    trainer.zero_grad()


def _resumed(ctx: RankContext, plan: Plan, trainer: Trainer) -> Trainer:
    state = copy.deepcopy(state_of(trainer))
    again = begin(ctx, "mixed", plan, loaded(plan, dict(trainer.module.named_parameters())))
    again.optimizer.load_state_dict(state)
    return again


def _seen(trainer: Trainer) -> tuple[Tensor, float | None]:
    weights = torch.cat([p.detach().clone() for p in trainer.module.parameters()])
    scale = getattr(trainer.optimizer, "loss_scale", None)
    return weights, None if scale is None or callable(scale) else float(scale)
