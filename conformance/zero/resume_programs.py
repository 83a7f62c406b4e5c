"""Rank programs that train on some ranks, save, and go on with another number of ranks. Imports no pytest."""

from __future__ import annotations

import io
from typing import Any

import torch

from conformance.zero.plan import Plan
from conformance.zero.saved_states import assert_whole, full_state, loaded, state_of
from conformance.zero.value_programs import Report, begin, go_on, whole
from fixtures.world.context import RankContext
from impls.handover import NotProvided


def save(ctx: RankContext, name: str, plan: dict[str, Any]) -> dict[str, Any]:
    """Train, and pack all that it takes to go on with another number of ranks; or the reason why nothing does."""
    todo = Plan(**plan)
    try:
        trainer = begin(ctx, name, todo, todo.build())
        go_on(ctx, trainer, todo)
        whole_state = full_state(trainer) if name == "3" else state_of(trainer)
        assert_whole(trainer, whole_state)
        held = whole(ctx, trainer, todo)
    except NotProvided as reason:
        return {"missing": str(reason)}
    packed = io.BytesIO()
    torch.save({"held": held, "state": whole_state}, packed)
    return {"saved": packed.getvalue()}


def resume(ctx: RankContext, name: str, plan: dict[str, Any], saved: bytes) -> Report:
    """Go on from what `save` packed, with fresh weights in the module where the state has them."""
    todo = Plan(**plan)
    found = torch.load(io.BytesIO(saved), weights_only=False)
    trainer = begin(ctx, name, todo, todo.build(todo.seed + 1) if name == "3" else loaded(todo, found["held"]))
    if name == "3":
        assert ctx.impl is not None
        ctx.impl.invoke(trainer.wrapper.load_full_state, found["state"], trainer.optimizer)
    else:
        trainer.optimizer.load_state_dict(found["state"])
    return go_on(ctx, trainer, todo)
