"""Rank programs that train by plan, under any stage of any implementation. Imports no pytest.

They report the parameters and losses that a rank sees; what is right is decided elsewhere.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from conformance.zero.parameter_groups import add_groups, groups_of
from conformance.zero.plan import Plan
from conformance.zero.saved_states import loaded, state_of
from fixtures.world.context import RankContext
from impls.handover import NotProvided, takes
from impls.stages import STAGES, Trainer, stage

# How an optimizer with copies of its own is told that the module's values are others now, in order of trial.
TAKES_OVER = ("reload_model_params", "refresh_fp32_params")
Report = dict[str, Any]
Step = Callable[[RankContext, Trainer, Plan, int], float]  # forward and backward of a step; the loss


def chooses(ctx: RankContext, name: str) -> bool:
    """Whether the implementation takes no optimizer, but has one of its own."""
    assert ctx.impl is not None
    target = ctx.impl.get(STAGES[name])
    return name != "3" and target is not None and not takes(target, "optimizer_cls") and not takes(target, "optimizer")


def train(
    ctx: RankContext, name: str, plans: list[dict[str, Any]], *, way: str = "straight", at: int = 0
) -> list[dict[str, Any]]:
    """Run the plans one after the other, in one of `WAYS`; a plan that the implementation does not take says why."""
    return [_unless_missing(ctx, name, Plan(**fields), way, at) for fields in plans]


def _unless_missing(ctx: RankContext, name: str, plan: Plan, way: str, at: int) -> dict[str, Any]:
    try:
        return WAYS[way](ctx, name, plan, at)
    except NotProvided as reason:
        return {"missing": str(reason)}


# -- ways through a plan -----------------------------------------------------------------------------------------------


def straight(ctx: RankContext, name: str, plan: Plan, at: int) -> Report:
    """All steps, one after the other."""
    return go_on(ctx, begin(ctx, name, plan, plan.build()), plan)


def after_a_false_start(ctx: RankContext, name: str, plan: Plan, at: int) -> Report:
    """A backward pass on the wrong rows, forgotten by ``zero_grad()``, and then all steps."""
    trainer = begin(ctx, name, plan, plan.build())
    accumulate(ctx, trainer, plan.part(slice(-1, None)), 0)
    trainer.zero_grad()
    return go_on(ctx, trainer, plan)


def saved_and_resumed(ctx: RankContext, name: str, plan: Plan, at: int) -> Report:
    """After `at` steps module and optimizer are saved, thrown away, and loaded into fresh ones."""
    return _resumed(ctx, name, plan, at, plan)


def resumed_with_its_options(ctx: RankContext, name: str, plan: Plan, at: int) -> Report:
    """The same, but the fresh optimizer was built with another rate: the loaded one has to count."""
    return _resumed(ctx, name, plan, at, with_another_rate(plan))


def _resumed(ctx: RankContext, name: str, plan: Plan, at: int, fresh: Plan) -> Report:
    trainer = begin(ctx, name, plan, plan.build())
    first = go_on(ctx, trainer, plan.part(slice(at)))
    held, state = first["steps"][-1], copy.deepcopy(state_of(trainer))
    again = begin(ctx, name, fresh, loaded(plan, held))
    again.optimizer.load_state_dict(state)
    second = go_on(ctx, again, plan.part(slice(at, None)))
    return {key: first[key] + second[key] for key in first}


def loaded_late(ctx: RankContext, name: str, plan: Plan, at: int) -> Report:
    """The module gets its weights when the optimizer is there already, and before the first step."""
    module, right = plan.build(plan.seed + 1), plan.build()
    trainer = begin(ctx, name, plan, module)
    module.load_state_dict(right.state_dict())
    for take_over in TAKES_OVER:
        if callable(method := getattr(trainer.optimizer, take_over, None)):
            method()
            break
    return go_on(ctx, trainer, plan)


def with_one_backward(ctx: RankContext, name: str, plan: Plan, at: int) -> Report:
    """The forward passes of all microbatches of a step, and then one backward pass of the sum of their losses."""
    return go_on(ctx, begin(ctx, name, plan, plan.build()), plan, step=forward_all)


def with_overflows(ctx: RankContext, name: str, plan: Plan, at: int) -> Report:
    """After `at` steps come two whose gradients are not finite on one rank: they have to leave no trace."""
    trainer = begin(ctx, name, plan, plan.build())
    first = go_on(ctx, trainer, plan.part(slice(at)))
    for bad_rank, bad in ((0, math.inf), (ctx.world_size - 1, math.nan)):
        x, target = plan.rows_of(at)[0]
        trainer.backward(plan.loss_of(trainer, x * bad if ctx.rank == bad_rank else x, target))
        trainer.finish()
        trainer.average()
        trainer.step()
        trainer.zero_grad()
    second = go_on(ctx, trainer, plan.part(slice(at, None)))
    return {key: first[key] + second[key] for key in first}


WAYS = {
    way.__name__: way
    for way in (
        straight,
        after_a_false_start,
        saved_and_resumed,
        resumed_with_its_options,
        loaded_late,
        with_one_backward,
        with_overflows,
    )
}


def buffers(ctx: RankContext, name: str, plan: dict[str, Any]) -> dict[str, Any]:
    """The buffers after training, and those that the module alone has after the same forward passes."""
    todo = Plan(**plan)
    trainer = begin(ctx, name, todo, todo.build())
    for index in range(len(todo.data)):
        accumulate(ctx, trainer, todo, index)
        trainer.average()
        trainer.step()
        trainer.zero_grad()
    owner = trainer.wrapper if isinstance(trainer.wrapper, nn.Module) else trainer.module
    found = {name.removeprefix("module."): buffer for name, buffer in owner.named_buffers()}
    if not found:  # a wrapper need not list what it wraps
        found = dict(trainer.module.named_buffers())
    return {"after": _copies(found), "wanted": _copies(_buffers_alone(todo))}


def _buffers_alone(plan: Plan) -> dict[str, Tensor]:
    """Computed last, so that nothing of it is there while the implementation runs."""
    bare = plan.build()
    for step in range(len(plan.data)):
        for x, _ in plan.rows_of(step):
            bare(x)
    return dict(bare.named_buffers())


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in sorted(tensors.items())}


# -- their pieces ------------------------------------------------------------------------------------------------------


def begin(
    ctx: RankContext, name: str, plan: Plan, module: nn.Module, group: dist.ProcessGroup | None = None
) -> Trainer:
    """The module and its optimizer under the stage. Raises `NotProvided` for extras that are not taken."""
    assert ctx.impl is not None
    for extra in [*plan.extras, *(["group"] if group is not None else [])]:
        if not takes(ctx.impl.get(STAGES[name]), extra):
            raise NotProvided(f"{ctx.impl.name}'s {STAGES[name]} takes no {extra}")
    if plan.on_shards:
        _assert_takes_the_mean(ctx, plan)
    return stage(
        ctx.impl,
        name,
        module,
        optimizer_cls=getattr(torch.optim, plan.optimizer, torch.optim.SGD),
        groups=None if plan.groups is None else groups_of(ctx, name, plan, module),
        extras=plan.extras,
        group=group,
        reshard_after_forward=plan.extras.get("reshard_after_forward"),
        mixed=plan.on_shards,
        **plan.options,
    )


def _assert_takes_the_mean(ctx: RankContext, plan: Plan) -> None:
    """Raises `NotProvided` for a mixed precision that averages gradients: those of shards are averaged already."""
    assert ctx.impl is not None
    alone = stage(ctx.impl, "mixed", nn.Linear(2, 2, dtype=plan.dtype), lr=0.1)
    if ctx.world_size > 1 and not alone.wants_mean:
        raise NotProvided(f"{ctx.impl.name}'s MixedPrecision averages gradients itself: it is not for shards")


def with_another_rate(plan: Plan) -> Plan:
    """The same, seven times as fast."""
    return dataclasses.replace(plan, options={**plan.options, "lr": 7 * plan.options["lr"]})


def go_on(ctx: RankContext, trainer: Trainer, plan: Plan, *, step: Step | None = None) -> Report:
    """All steps of a plan: losses, norms and parameters after each. A stage 3 is asked for these at the end only."""
    losses, norms, steps = [], [], []
    for index in range(len(plan.data)):
        add_groups(trainer, plan, index)
        losses.append((step or accumulate)(ctx, trainer, plan, index))
        trainer.average()
        if plan.max_norm is not None:
            norms.append(_clip(trainer, plan, plan.max_norm))
        if plan.rates is not None:
            trainer.set_rate(plan.rates[index])
        if plan.changes is not None:
            trainer.set_options(plan.changes[index])
        trainer.step()
        trainer.zero_grad()
        is_seen = trainer.name != "3" or index + 1 == len(plan.data)
        steps.append(whole(ctx, trainer, plan) if is_seen else None)
    return {"losses": losses, "norms": norms, "steps": steps}


def _clip(trainer: Trainer, plan: Plan, max_norm: float) -> float:
    own = getattr(trainer.optimizer, "clip_grad_norm_", None)
    if trainer.name == "mixed" and own is None:
        raise NotProvided("there is no clip_grad_norm_, and torch's would take the norm of scaled gradients in 16 bits")
    if plan.on_shards and not takes(own, "sharded"):
        raise NotProvided("mixed precision has no clip_grad_norm_ with sharded=True, for gradients that are shards")
    return trainer.clip(max_norm)


def accumulate(ctx: RankContext, trainer: Trainer, plan: Plan, index: int) -> float:
    """Forward and backward of every microbatch of a step; the loss of this rank."""
    plan.activate(trainer.module, index)
    total = 0.0
    for x, target in plan.rows_of(index):
        if plan.evaluates:
            with torch.no_grad():
                plan.loss_of(trainer, x, target)
        loss = plan.loss_of(trainer, x, target)
        trainer.backward(loss)
        trainer.finish()
        total += float(loss.detach())
    return total


def forward_all(ctx: RankContext, trainer: Trainer, plan: Plan, index: int) -> float:
    """As `accumulate`, with one backward pass for all microbatches."""
    losses = torch.stack([plan.loss_of(trainer, x, target) for x, target in plan.rows_of(index)])
    trainer.backward(losses.sum())
    trainer.finish()
    return float(losses.detach().sum())


def whole(ctx: RankContext, trainer: Trainer, plan: Plan) -> dict[str, Tensor]:
    """Copies of all parameters; the rows are for a forward pass, should that be needed to see them."""
    x, _ = plan.rows_of(0)[0]
    cast = plan.dtype is not None and plan.shapes is None
    return trainer.full_parameters(x.to(plan.dtype) if cast else x)
