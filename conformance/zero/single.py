"""What a single process makes of a plan: the yardstick of sharded training. No process group, no implementation.

It trains in double precision with the loss averaged over the rows of all ranks. SGD, Adam and AdamW are written out as
torch has them (torch.optim takes seconds to import): a weight decay counts as part of the gradient but for AdamW.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from conformance.loop.single import FLOAT32_UNIT, NUDGE
from conformance.zero.plan import Plan
from fixtures import models

Weights = dict[str, Tensor]
State = dict[str, Any]
NUDGES = (NUDGE, -NUDGE)
FLOAT64_UNIT = 2.0**-52  # twice that of one rounding: the yardstick rounds as well
CLIPS_AT = 1e-6  # what torch's clip_grad_norm_ adds to the norm, and others do not
OF_SEVERAL_DTYPES = ("mixed",)  # models that convert between layers: they are run as they are, with exact numbers


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of one process, in double precision."""

    start: Weights
    steps: list[Weights]  # all parameters after each step, tied ones under each of their names
    losses: list[list[float]]  # step, rank: the loss of this rank's rows
    norms: list[float]  # of the whole gradient of each step

    @property
    def moved(self) -> float:
        """The largest change of any parameter."""
        return apart(self.steps[-1], self.start)

    @property
    def still(self) -> set[str]:
        """The parameters that did not change at all."""
        return {name for name, value in self.start.items() if torch.equal(value, self.steps[-1][name])}


def train(
    plan: Plan,
    *,
    nudge: float = 0.0,
    dtype: torch.dtype = torch.float64,
    factor: float = 1.0,
    forgets: Collection[int] = (),
) -> Run:
    """Train as planned. `nudge` moves the initial weights, and each gradient by that share of its largest element.

    The faults of others: gradients are `factor` times too large, the state of all parameters is lost before the steps
    that it `forgets`.
    """
    module = plan.build() if plan.model in OF_SEVERAL_DTYPES else plan.build().to(dtype)
    start = _weights(module)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(nudge)
    state: dict[nn.Parameter, State] = {}
    losses, norms, steps = [], [], []
    for step, by_rank in enumerate(plan.data):
        if step in forgets:
            state.clear()
        losses.append(_backward(plan, module, step, dtype))
        norms.append(_clip(module, plan.max_norm))
        for name, parameter in module.named_parameters():
            options = plan.options_of(name, step)
            if parameter.grad is None or options is None:
                continue
            if plan.rates is not None:
                options = {**options, "lr": plan.rates[step]}
            if plan.changes is not None:
                options = {**options, **plan.changes[step]}
            _update(plan, parameter, _nudged(factor * parameter.grad, nudge), options, state.setdefault(parameter, {}))
            if plan.is_rounded:
                parameter.data = parameter.data.to(plan.dtype).to(dtype)
        module.zero_grad()
        steps.append(_weights(module))
        assert len(by_rank) == len(losses[-1])
    return Run(start=start, steps=steps, losses=losses, norms=norms)


def _weights(module: nn.Module) -> Weights:
    return {name: p.detach().clone() for name, p in module.named_parameters(remove_duplicate=False)}


def _backward(plan: Plan, module: nn.Module, step: int, dtype: torch.dtype) -> list[float]:
    """Gradients of the mean over ranks; the loss of each rank."""
    by_rank = plan.data[step]
    whole = dataclasses.replace(plan, dtype=None)
    losses = []
    for rank, micro in enumerate(by_rank):
        if plan.active is not None:
            module.active = plan.active[step][rank]  # type: ignore[assignment]  # a plain flag of models.Optional
        inputs = [(x if plan.model in OF_SEVERAL_DTYPES else x.to(dtype), target) for x, target in micro]
        losses.append(torch.stack([whole.loss_of(module, x, target) for x, target in inputs]).sum())
    torch.stack(losses).mean().backward()  # type: ignore[no-untyped-call]
    return [float(loss.detach()) for loss in losses]


def _clip(module: nn.Module, max_norm: float | None) -> float:
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    if max_norm is not None:
        for gradient in gradients:
            gradient.mul_(min(1.0, max_norm / norm))
    return norm


def _nudged(gradient: Tensor, nudge: float) -> Tensor:
    """What is exactly zero (a unit that nothing reached) is so in any order of addition, and stays."""
    return gradient + nudge * float(gradient.abs().max()) * (gradient != 0) if gradient.numel() else gradient


# -- the rules ---------------------------------------------------------------------------------------------------------


@torch.no_grad()
def _update(plan: Plan, parameter: nn.Parameter, gradient: Tensor, options: Mapping[str, Any], state: State) -> None:
    RULES[plan.optimizer](parameter, gradient, options, state)


def _sgd(parameter: Tensor, gradient: Tensor, options: Mapping[str, Any], state: State) -> None:
    gradient = gradient + options.get("weight_decay", 0.0) * parameter
    state["velocity"] = options.get("momentum", 0.0) * state.get("velocity", torch.zeros_like(gradient)) + gradient
    parameter.sub_(options["lr"] * state["velocity"])


def _adam(parameter: Tensor, gradient: Tensor, options: Mapping[str, Any], state: State) -> None:
    _adam_without_decay(parameter, gradient + options.get("weight_decay", 0.0) * parameter, options, state)


def _adamw(parameter: Tensor, gradient: Tensor, options: Mapping[str, Any], state: State) -> None:
    parameter.mul_(1 - options["lr"] * options.get("weight_decay", 0.01))
    _adam_without_decay(parameter, gradient, options, state)


def _adam_without_decay(parameter: Tensor, gradient: Tensor, options: Mapping[str, Any], state: State) -> None:
    (beta1, beta2), zero = options.get("betas", (0.9, 0.999)), torch.zeros_like(gradient)
    state["count"] = count = state.get("count", 0) + 1
    state["first"] = beta1 * state.get("first", zero) + (1 - beta1) * gradient
    state["second"] = beta2 * state.get("second", zero) + (1 - beta2) * gradient**2
    size = (state["second"] / (1 - beta2**count)).sqrt() + options.get("eps", 1e-8)
    parameter.sub_(options["lr"] * (state["first"] / (1 - beta1**count)) / size)


RULES: Mapping[str, Callable[[Tensor, Tensor, Mapping[str, Any], State], None]] = {
    "SGD": _sgd,
    "Adam": _adam,
    "AdamW": _adamw,
}


# -- how far a right result may be off ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How far a correct float32 run may be from the exact one, in any parameter and in any rank's loss."""

    parameters: float
    losses: float


@functools.lru_cache(maxsize=256)  # three stages are held to the same run
def yardstick(plan: Plan) -> tuple[Run, Bound]:
    """The exact run of a plan, and how far from it a right one may end."""
    run = train(plan)
    return run, rounding_bound(plan, run)


def rounding_bound(plan: Plan, exact: Run) -> Bound:
    """What float32 rounding may make of a run, whatever the order of additions.

    Per step an element takes part in at most ``terms`` roundings (rows of the global batch, the widths it is summed
    over, the ranks, the update), each of at most `FLOAT32_UNIT` of the largest value. What is wrong is magnified by as
    much as a nudge of weights and gradients is: Adam's division can make much of little.
    """
    nudged = [train(plan, nudge=nudge) for nudge in NUDGES]
    num_rows = max(sum(len(x) for micro in by_rank for x, _ in micro) for by_rank in plan.data)
    terms = num_rows + len(plan.data[0]) + 4 * models.FEATURES + 16
    if plan.max_norm is not None:
        terms += math.ceil(CLIPS_AT / min(exact.norms) / FLOAT32_UNIT)
    unit = FLOAT64_UNIT if plan.dtype is torch.float64 else FLOAT32_UNIT
    roundings = len(plan.data) * terms * unit
    farthest = max(apart(run.steps[-1], exact.steps[-1]) for run in nudged)
    largest = max(1.0, *(float(value.abs().max()) for value in exact.steps[-1].values() if value.numel()))
    losses = _flat(exact.losses)
    loss_apart = max(abs(a - b) for run in nudged for a, b in zip(_flat(run.losses), losses, strict=True))
    return Bound(
        parameters=roundings * largest * max(1.0, farthest / NUDGE),
        losses=roundings * max(1.0, *map(abs, losses)) * max(1.0, loss_apart / NUDGE),
    )


def apart(first: Weights, second: Weights) -> float:
    """The largest difference of any element."""
    pairs = [(value, second[name]) for name, value in first.items() if value.numel()]
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs)


@functools.lru_cache(maxsize=256)
def exact_yardstick(plan: Plan) -> Run:
    """The run of a plan that leaves float32 nothing to round, which is asserted: its result is compared bit for bit."""
    exact, single = train(plan), train(plan, dtype=torch.float32)
    assert apart(single.steps[-1], exact.steps[-1]) == 0, f"float32 has to round in {plan.called}"
    assert single.losses == exact.losses, f"float32 has to round a loss in {plan.called}"
    return exact


def _flat(rows: Sequence[Sequence[float]]) -> list[float]:
    return [value for row in rows for value in row]
