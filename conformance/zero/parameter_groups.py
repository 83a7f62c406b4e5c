"""The parameter groups of a plan, put together on a rank by the names of parameters. Imports no pytest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from conformance.zero.plan import Plan
from fixtures.world.context import RankContext
from impls.handover import NotProvided, takes
from impls.stages import STAGES, Trainer

Group = dict[str, Any]


def groups_of(ctx: RankContext, name: str, plan: Plan, module: nn.Module) -> Callable[[nn.Module], list[Group]]:
    """What makes the first parameter groups of a plan, for whatever module the optimizer is built on."""
    assert ctx.impl is not None
    target, names = ctx.impl.get(STAGES[name]), {name for name, _ in module.named_parameters()}
    if name != "3" and not takes(target, "params") and not takes(target, "optimizer"):
        raise NotProvided(f"{ctx.impl.name}'s {STAGES[name]} takes a module, and no parameter groups")

    def make(owner: nn.Module) -> list[Group]:
        named = {name.removeprefix("module."): parameter for name, parameter in owner.named_parameters()}
        if set(named) != names:
            raise NotProvided(
                f"the sharded module has parameters {', '.join(sorted(named)[:3])}, ..., not those of the module "
                f"({', '.join(sorted(names)[:3])}, ...): they cannot be put into groups by name"
            )
        return _groups_since(0, plan, named)

    return make


def _groups_since(step: int, plan: Plan, named: Mapping[str, nn.Parameter]) -> list[Group]:
    """The groups that are there from a step on."""
    return [
        {"params": [p for name, p in named.items() if plan.group_of(name) == index], **options}
        for index, (_, options, since) in enumerate(plan.groups or [])
        if since == step
    ]


def add_groups(trainer: Trainer, plan: Plan, step: int) -> None:
    """Add the groups that are there from this step on. Raises `NotProvided` for an optimizer that takes none."""
    if step and plan.groups and any(since == step for *_, since in plan.groups):
        add = getattr(trainer.optimizer, "add_param_group", None)
        if add is None:
            raise NotProvided(f"{type(trainer.optimizer).__name__} has no add_param_group()")
        for group in _groups_since(step, plan, dict(trainer.module.named_parameters())):
            for parameter in group["params"]:
                parameter.grad = None  # of the steps in which no optimizer knew it
            add(group)
