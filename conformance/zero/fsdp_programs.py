"""Rank programs about what only fully sharded modules have: groups, what they tell, what they save. No pytest here."""

from __future__ import annotations

import io
from typing import Any

import torch
from torch import Tensor, nn

from conformance.groups import own_group
from conformance.zero.plan import Plan
from conformance.zero.saved_states import full_state
from conformance.zero.value_programs import Report, begin, go_on, whole, with_another_rate
from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.stages import Trainer

STAGE = "3"


def in_halves(ctx: RankContext, name: str, plan: dict[str, Any]) -> Report:
    """Train in a group of half of the ranks, while the others train in theirs; the rows are those of all ranks."""
    todo, half = Plan(**plan), ctx.world_size // 2
    with own_group([range(half), range(half, ctx.world_size)]) as group:
        try:
            return go_on(ctx, begin(ctx, name, todo, todo.build(), group), todo)
        except NotProvided as reason:
            return {"missing": str(reason)}


def told(ctx: RankContext, plan: dict[str, Any], at: int) -> dict[str, Any]:
    """All parameters as they are given out, after the first `at` steps and at the end, and those computed with."""
    todo = Plan(**plan)
    trainer = begin(ctx, STAGE, todo, todo.build())
    found = []
    for steps in (slice(at), slice(at, None)):
        go_on(ctx, trainer, todo.part(steps))
        found.append((trainer.told_parameters(), whole(ctx, trainer, todo)))
    return {"told": [given for given, _ in found], "used": [used for _, used in found]}


def save(ctx: RankContext, plan: dict[str, Any]) -> dict[str, Any]:
    """Train, and pack the full state, with the buffers as they are; or the reason why there is none."""
    todo = Plan(**plan)
    trainer = begin(ctx, STAGE, todo, todo.build())
    go_on(ctx, trainer, todo)
    try:
        state = full_state(trainer)
    except NotProvided as reason:
        return {"missing": str(reason)}
    packed = io.BytesIO()
    torch.save(state, packed)
    return {"saved": packed.getvalue(), "buffers": _saved_buffers(trainer, todo)}


def resume(ctx: RankContext, plan: dict[str, Any], saved: bytes) -> Report:
    """Go on from there with a module of other values, and an optimizer that was built with another rate."""
    assert ctx.impl is not None
    todo = Plan(**plan)
    trainer = begin(ctx, STAGE, with_another_rate(todo), todo.build(todo.seed + 1))
    state = torch.load(io.BytesIO(saved), weights_only=False)
    ctx.impl.invoke(trainer.wrapper.load_full_state, state, trainer.optimizer)
    buffers = _saved_buffers(trainer, todo)
    return {**go_on(ctx, trainer, todo), "buffers": buffers}


def _saved_buffers(trainer: Trainer, plan: Plan) -> dict[str, Tensor]:
    """Copies of the buffers that a state dict has: not of those that are registered as not persistent."""
    owner = trainer.wrapper if isinstance(trainer.wrapper, nn.Module) else trainer.module
    saved = plan.build().state_dict()
    named = ((name.removeprefix("module."), buffer) for name, buffer in owner.named_buffers())
    return {name: buffer.detach().clone() for name, buffer in sorted(named) if name in saved}
