"""Rank programs about what only fully sharded modules have: groups, what they tell, what they save. No pytest here."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from conformance.groups import own_group
from conformance.zero.plan import Plan
from conformance.zero.saved_states import full_state
from conformance.zero.value_programs import Report, begin, go_on, whole, with_another_rate
from fixtures import models
from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.stages import Trainer, stage

STAGE = "3"
GAIN = 3.0


class Bent(nn.Module):
    """Two linear layers that hold all parameters; takes more than its input, and turns about in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(models.FEATURES, models.FEATURES)
        self.second = nn.Linear(models.FEATURES, models.FEATURES)

    def forward(self, x: Tensor, shift: Tensor | float = 0.0, *, gain: float = 1.0) -> Tensor:
        """[rows, FEATURES] to [rows, FEATURES]."""
        out: Tensor = gain * (self.second(self.first(x)) + shift)
        return out if self.training else -out


def called(ctx: RankContext, seed: int, rows: Tensor, shift: Tensor, *, training: bool) -> dict[str, Any]:
    """A forward and a backward pass of the sharded and of a bare module, up to the input, with all that it takes."""
    assert ctx.impl is not None
    bare = models.fill(Bent(), seed).train(training)
    module = models.fill(Bent(), seed).train(training)
    try:
        trainer = stage(ctx.impl, STAGE, module, lr=1.0)
    except NotProvided as reason:
        return {"missing": str(reason)}
    further, keywords = _taken(trainer.wrapper, shift)
    found = []
    for forward, backward in ((trainer, trainer.backward), (bare, Tensor.backward)):
        x = rows.clone().requires_grad_()
        out = forward(x, *further, **keywords)
        backward(out.sum())
        found.append({"result": out.detach().clone(), "input's gradient": x.grad})
    trainer.finish()
    return {"sharded": found[0], "bare": found[1]}


def _taken(wrapper: Callable[..., Any], shift: Tensor) -> tuple[list[Tensor], dict[str, float]]:
    """What may be given beside the input: a forward that says it takes no more is not asked to."""
    forward = inspect.signature(wrapper.forward if isinstance(wrapper, nn.Module) else wrapper)
    for further, keywords in (([shift], {"gain": GAIN}), ([shift], {})):
        try:
            forward.bind(shift, *further, **keywords)
        except TypeError:
            continue
        return further, keywords
    return [], {}


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
