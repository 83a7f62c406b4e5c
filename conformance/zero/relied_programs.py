"""Training as people do it, longer and with more at once than the plain runs: what the ranks do. Imports no pytest.

A run is a `Relied` plan: options that a loop writes into ``param_groups``, a large tensor, strided parameters, a layer
that is frozen and thawed, and the way through the plan.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from conformance.zero import value_programs
from conformance.zero.parameter_groups import groups_of
from conformance.zero.plan import Plan
from conformance.zero.saved_states import loaded, state_of
from conformance.zero.value_programs import Report
from fixtures import models
from fixtures.world.context import RankContext
from impls.handover import NotProvided, takes
from impls.stages import STAGES, Trainer, stage

NUM_WIDE = 2**15  # of 4 features each: 131072 elements
SMALL_BUCKET_MB = 2.0**-13  # 32 floats: even small models have several buckets
SIDES = ((0, 2), (1, 3))  # of four ranks: neither begins at 0 with neighbours only


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relied(Plan):
    """One training run, and what happens in the course of it."""

    written: list[list[Any]] = dataclasses.field(default_factory=list)  # [first step, group, options written into it]
    way: str = "straight"
    at: int = 0  # the step before which it takes a turn
    is_strided: bool = False
    sees_all: bool = True  # parameters are reported after every step, else after the last

    def build(self, seed: int | None = None) -> nn.Module:
        """The module with its initial weights."""
        if self.shapes is None and self.model in MODELS:
            module = MODELS[self.model]()
            return models.fill(module, self.seed if seed is None else seed, real=self.real)
        module = Plan.build(self, seed)
        for parameter in module.parameters() if self.is_strided else ():
            if parameter.dim() > 1:
                parameter.data = parameter.data.transpose(0, 1).contiguous().transpose(0, 1)
        return module

    def options_of(self, name: str, step: int) -> Mapping[str, Any] | None:
        """The optimizer's options for a parameter in a step, as they have been changed by then."""
        options = dict(Plan.options_of(self, name, step) or {})
        for since, group, changed in self.written:
            if since <= step and group == (self.group_of(name) or 0):
                options.update(changed)
        return options


class Large(nn.Module):
    """A weight of 131072 elements beside small ones, one of them under two names; smooth, so that bounds are narrow."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(models.FEATURES, NUM_WIDE, bias=False)
        self.encoder = nn.Linear(models.FEATURES, models.FEATURES, bias=False)
        self.decoder = nn.Linear(models.FEATURES, models.FEATURES)
        self.decoder.weight = self.encoder.weight
        self.head = nn.Linear(models.FEATURES, models.FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, FEATURES] to [rows, FEATURES]."""
        pairs = torch.tanh(self.wide(x)).view(len(x), models.FEATURES, -1, 2)
        folded = (pairs[..., 0] - pairs[..., 1]).sum(2) / NUM_WIDE**0.5  # what moves all weights alike cancels out
        out: Tensor = self.head(torch.tanh(self.decoder(torch.tanh(self.encoder(x + folded)))))
        return out


class Refrozen(nn.Module):
    """Its last layer is frozen when it is built, learns while ``active``; a layer before it is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.layer0 = nn.Linear(models.FEATURES, 3)
        self.head = nn.Linear(models.FEATURES, models.FEATURES)
        self.late = nn.Linear(models.FEATURES, models.FEATURES)
        self.active = False

    @property
    def active(self) -> bool:
        """Whether the last layer learns."""
        return self.late.weight.requires_grad

    @active.setter
    def active(self, value: bool) -> None:
        self.late.requires_grad_(value)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, FEATURES] to [rows, FEATURES]."""
        out: Tensor = self.late(torch.tanh(self.head(x)))
        return out


MODELS = {"large": Large, "refrozen": Refrozen}


def train(ctx: RankContext, name: str, plans: list[dict[str, Any]], *, is_trial: bool = False) -> list[Report]:
    """Run the plans one after the other; a plan that the implementation does not take says why.

    In a trial, which is for one rank, whatever an implementation raises counts as not taken.
    """
    reports = []
    for fields in plans:
        plan = Relied(**fields)
        try:
            reports.append(WAYS[plan.way](ctx, name, plan))
        except NotProvided as reason:
            reports.append({"missing": str(reason)})
        except Exception as error:
            if not is_trial:
                raise
            reports.append({"missing": f"{plan.called}: {type(error).__name__}: {error}"})
    return reports


def in_two_groups(ctx: RankContext, name: str, plan: dict[str, Any]) -> Report:
    """Two halves of the ranks train models of their own, each in a process group of its own."""
    assert ctx.impl is not None
    if not takes(ctx.impl.get(STAGES[name]), "group"):
        raise NotProvided(f"{ctx.impl.name}'s {STAGES[name]} takes no group: it is for all ranks")
    todo, mine = Relied(**plan), None
    for side in SIDES:
        handle = dist.new_group(list(side))
        mine = handle if ctx.rank in side else mine
    report = _go_on(ctx, _begin(ctx, name, todo, todo.build(), mine), todo, range(len(todo.data)))
    dist.destroy_process_group(mine)
    return report


def alone(
    ctx: RankContext, optimizer: str, options: dict[str, Any], start: list[Tensor], gradients: list[list[Tensor]]
) -> list[Tensor]:
    """What torch's own optimizer makes of these gradients, step after step, in double precision."""
    parameters = [nn.Parameter(value.double()) for value in start]
    rule = getattr(torch.optim, optimizer)(parameters, **options)
    for of_step in gradients:
        for parameter, gradient in zip(parameters, of_step, strict=True):
            parameter.grad = gradient.double()
        rule.step()
    return [parameter.detach() for parameter in parameters]


# -- ways through a plan -----------------------------------------------------------------------------------------------


def straight(ctx: RankContext, name: str, plan: Relied) -> Report:
    """All steps, one after the other."""
    return _go_on(ctx, _begin(ctx, name, plan, plan.build()), plan, range(len(plan.data)))


def saved_and_resumed(ctx: RankContext, name: str, plan: Relied) -> Report:
    """Saved, thrown away and loaded into a fresh module and a fresh optimizer, built with the options of the first."""
    trainer = _begin(ctx, name, plan, plan.build())
    first = _go_on(ctx, trainer, plan, range(plan.at))
    held, state = first["steps"][-1], copy.deepcopy(state_of(trainer))
    again = _begin(ctx, name, plan, loaded(plan, held))
    again.optimizer.load_state_dict(state)
    second = _go_on(ctx, again, plan, range(plan.at, len(plan.data)))
    return {key: first[key] + second[key] for key in first}


def zeroed_in_place(ctx: RankContext, name: str, plan: Relied) -> Report:
    """A backward pass on the wrong rows, forgotten by ``zero_grad(set_to_none=False)``, and then all steps."""
    trainer = _begin(ctx, name, plan, plan.build())
    if not takes(trainer.optimizer.zero_grad, "set_to_none"):
        raise NotProvided(f"zero_grad() of {type(trainer.optimizer).__name__} takes no set_to_none")
    value_programs.accumulate(ctx, trainer, plan, len(plan.data) - 1)
    trainer.optimizer.zero_grad(set_to_none=False)
    return _go_on(ctx, trainer, plan, range(len(plan.data)))


def by_closure(ctx: RankContext, name: str, plan: Relied) -> Report:
    """Forward and backward are in a closure that ``step()`` is given. It need not switch gradients on for it."""
    trainer = _begin(ctx, name, plan, plan.build())
    if not takes(trainer.optimizer.step, "closure"):
        raise NotProvided(f"step() of {type(trainer.optimizer).__name__} takes no closure")
    losses: list[float] = []
    steps = []
    for index in range(len(plan.data)):

        def closure(index: int = index) -> float:
            with torch.enable_grad():
                losses.append(value_programs.accumulate(ctx, trainer, plan, index))
            trainer.average()
            return losses[-1]

        trainer.optimizer.step(closure)
        if not losses:
            raise NotProvided(f"step() of {type(trainer.optimizer).__name__} does not call the closure that it takes")
        trainer.zero_grad()
        steps.append(trainer.full_parameters())
    return {"losses": losses, "norms": [], "steps": steps}


WAYS = {way.__name__: way for way in (straight, saved_and_resumed, zeroed_in_place, by_closure)}


# -- their pieces ------------------------------------------------------------------------------------------------------


def _begin(
    ctx: RankContext, name: str, plan: Relied, module: nn.Module, group: dist.ProcessGroup | None = None
) -> Trainer:
    """The module and its optimizer, which gets ``module.parameters()`` as such: a generator, as it is usually given."""
    assert ctx.impl is not None
    target = ctx.impl.get(STAGES[name])
    has_buckets = "bucket_cap_mb" in inspect.signature(target).parameters
    trainer = stage(
        ctx.impl,
        name,
        module,
        optimizer_cls=getattr(torch.optim, plan.optimizer),
        groups=_parameters if plan.groups is None else groups_of(ctx, name, plan, module),
        group=group,
        extras={"bucket_cap_mb": SMALL_BUCKET_MB} if has_buckets else {},
        **plan.options,
    )
    if plan.written:
        _require_groups(trainer, len(plan.groups or [[]]))
    return trainer


def _parameters(module: nn.Module) -> Any:
    return module.parameters()


def _require_groups(trainer: Trainer, count: int) -> None:
    """Raises `NotProvided`, on all ranks alike, where some rank cannot reach every group."""
    found = getattr(trainer.optimizer, "param_groups", None) or []
    are_there = torch.tensor(len(found) == count, dtype=torch.int32)
    dist.all_reduce(are_there, op=dist.ReduceOp.MIN)
    if not are_there:
        raise NotProvided(f"param_groups of {type(trainer.optimizer).__name__} are not the {count} groups it was given")


def _go_on(ctx: RankContext, trainer: Trainer, plan: Relied, indices: Sequence[int]) -> Report:
    """These steps of the plan: losses, norms and parameters after each."""
    losses, norms, steps = [], [], []
    for index in indices:
        for since, group, options in plan.written:
            if since == index:
                trainer.optimizer.param_groups[group].update(options)
        losses.append(value_programs.accumulate(ctx, trainer, plan, index))
        trainer.average()
        if plan.max_norm is not None:
            norms.append(trainer.clip(plan.max_norm))
        trainer.step()
        trainer.zero_grad()
        steps.append(trainer.full_parameters() if plan.sees_all or index + 1 == len(plan.data) else None)
    return {"losses": losses, "norms": norms, "steps": steps}
