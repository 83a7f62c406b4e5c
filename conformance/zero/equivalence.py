"""How sharded training is compared with a single process: every step, every rank, every parameter, every loss."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import expect
from conformance.checks import Judge, Subject, claim, failure_text, verdict_of
from conformance.expect import Comparison
from conformance.judge import Broken
from conformance.loop.judging import Named, judge_all
from conformance.verdict import Verdict
from conformance.zero import own_rule, single, value_programs
from conformance.zero.mistaken import faults_of
from conformance.zero.plan import UNKNOWN, Plan, parts
from conformance.zero.single import Bound, Run
from fixtures.world.outcome import Ending

STAGES = {"1": "ShardedOptimizer", "2": "Zero2Optimizer", "3": "fully_shard", "mixed": "MixedPrecision"}
EXACTLY = 2.0**-16  # what a fault's run may be off by, whose numbers need not be those that float32 has exactly
BY_FAR = 100  # how many times the bound the parameters have to move, or agreement within it says nothing
NORM_BOUND = 2.0**-16  # of a norm: far more than the rounding of a few hundred squares
HALVES = (torch.float16, torch.bfloat16)
Report = dict[str, Any]


def stages(*names: str, tier: str = "core") -> list[Any]:
    """Parameters for a check of these stages, each with what it needs."""
    return [
        pytest.param(name, marks=claim("zero.equivalence", tier=tier, provides=[STAGES[name]]), id=f"stage-{name}")
        for name in names
    ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What the ranks made of a plan, and what a single process does. Without a bound the comparison is bit for bit."""

    plan: Plan
    ranks: list[Report]
    run: Run
    bound: Bound | None
    turn: int = 0  # the step before which it was saved and loaded; 0 for none


def judge_plans(
    subject: Subject,
    judge: Judge,
    stage: str,
    world_size: int,
    plans: Sequence[Plan],
    *,
    way: str = "straight",
    at: int = 0,
    perhaps: str = "",
) -> None:
    """Train by the plans and compare with a single process.

    `way` is one of the ways through a plan, `at` the step where it takes a turn; all of them lead to the same place.
    `perhaps` says what of the plans an implementation may refuse, by raising on every rank.
    """
    plans = own_rule.where_it_chooses(subject, stage, world_size, plans)
    if not plans:
        judge.not_provided(f"{subject.name} has another rule than SGD, and this is exact with SGD only")
    outcomes = subject.observe(value_programs.train, world_size, stage, parts(plans, world_size), way=way, at=at)
    if perhaps and all(outcome.ending is Ending.RAISED for outcome in outcomes):
        judge.not_provided(f"{subject.name} takes no {perhaps}: {failure_text(outcomes)}")
    if (verdict := verdict_of(outcomes)) is not None:
        raise Broken(verdict, failure_text(outcomes), outcomes=outcomes)
    reports = outcomes.values
    by_plan = list(zip(plans, zip(*reports, strict=True), strict=True))
    reasons = [ranks[0]["missing"] for _, ranks in by_plan if "missing" in ranks[0]]
    turn = at if way == "saved_and_resumed" else 0
    done = [trained(subject, stage, plan, ranks, turn) for plan, ranks in by_plan if "missing" not in ranks[0]]
    if not done:
        judge.not_provided(reasons[0])
    judge_trained(judge, done)


def trained(subject: Subject, stage: str, plan: Plan, ranks: Sequence[Report], turn: int = 0) -> Trained:
    """The ranks' reports beside the yardstick, whose preconditions are asserted."""
    turn = turn or (getattr(plan, "at", 0) if getattr(plan, "way", "") == "saved_and_resumed" else 0)
    bound: Bound | None
    if plan.optimizer == UNKNOWN:
        run = own_rule.alone(subject, stage, plan)
        _, bound = single.yardstick(dataclasses.replace(plan, optimizer="Adam"))  # as if it were
    elif plan.is_exact and plan.optimizer == "SGD":
        run, bound = single.exact_yardstick(plan), None
    else:
        run, bound = single.yardstick(plan)
    if bound is not None:
        assert run.moved > BY_FAR * bound.parameters, f"{plan.called} moves by {run.moved:g}, the bound is {bound}"
    learning = {name for name, p in plan.build().named_parameters(remove_duplicate=False) if learns(plan, name, p)}
    if plan.optimizer == UNKNOWN and run.still & learning:
        raise Broken(Verdict.VIOLATED, f"on one rank {', '.join(sorted(run.still & learning))} did not move")
    assert not run.still & learning, f"{run.still & learning} did not move in {plan.called}"
    return Trained(plan=plan, ranks=list(ranks), run=run, bound=bound, turn=turn)


def judge_trained(judge: Judge, done: Sequence[Trained]) -> None:
    """One piece of evidence for the comparisons bit for bit, and one for those within a bound.

    What follows a rule that is not known can only be compared with itself on one rank, and a fault that is there too is
    not seen: then agreement is no more than inconclusive.
    """
    for within in (False, True):
        chosen = [item for item in done if (item.bound is not None) == within]
        if chosen:
            how = "within the bound of rounding" if within else "bit for bit"
            found = (named for item in chosen for named in _findings(item))
            message = f"parameters and losses of sharded training against a single process, {how}"
            judge_all(judge, found, message, explain=functools.partial(_fault, chosen))
    if any(item.plan.optimizer == UNKNOWN for item in done):
        judge.inconclusive(
            "all ranks do what one rank does alone, but nobody knows what that is: it chooses its optimizer itself, "
            f"and alone it is none of {own_rule.known()}. Take optimizer_cls as a parameter to have its steps judged"
        )


def _fault(done: Sequence[Trained]) -> str | None:
    """The one fault that explains every run that is not right."""
    bounds = [EXACTLY if item.bound is None else item.bound.parameters for item in done]
    found = [
        faults_of(item.plan, item.run, bound, item.ranks, item.turn) for item, bound in zip(done, bounds, strict=True)
    ]
    wrong = [faults for faults in found if faults is not None]
    common = set.intersection(*wrong) if wrong else set()
    return common.pop() if len(common) == 1 else None


def learns(plan: Plan, name: str, parameter: Any) -> bool:
    """Whether a parameter has to change in the course of the plan."""
    unused = ["extra"] if plan.model == "unused" else [f"layer{index}" for index in plan.unused]
    is_used = name.partition(".")[0] not in unused
    return bool(
        parameter.requires_grad and parameter.numel() and is_used and plan.options_of(name, len(plan.data)) is not None
    )


def _findings(item: Trained) -> Iterator[Named]:
    """Step after step, so that the first difference is the earliest; ranks may have been there for the last only."""
    plan, run = item.plan, item.run
    first = len(plan.data) - len(item.ranks[0]["losses"])
    for step in range(first, len(plan.data)):
        when = f"{plan.called}, step {step}"
        for rank, report in enumerate(item.ranks):
            if run.losses and plan.dtype not in HALVES:
                loss = _loss(report["losses"][step - first], run.losses[step][rank], item.bound)
                yield f"{when}, rank {rank}, loss", loss
            if plan.max_norm is not None:
                yield f"{when}, rank {rank}, norm", _norm(report["norms"][step - first], run.norms[step])
        ranks = [report["steps"][step - first] for report in item.ranks]
        if None not in ranks:
            yield from _parameters(item, step, ranks, when)


def _parameters(item: Trained, step: int, ranks: list[single.Weights], when: str) -> Iterator[Named]:
    for rank, values in enumerate(ranks):
        yield f"{when}, rank {rank}, names", expect.same(sorted(values), sorted(item.run.start))
        for name, wanted in item.run.steps[step].items():
            yield f"{when}, rank {rank}, {name}", _parameter(item, name, values[name], wanted)
    for name in item.run.start:
        yield f"{when}, {name}", expect.ranks_agree([values[name] for values in ranks], what=name)


def _parameter(item: Trained, name: str, value: Tensor, wanted: Tensor) -> Comparison:
    if name in item.run.still:
        return expect.same(value, item.run.start[name].to(value.dtype))
    if item.bound is None:
        return expect.same(value + 0.0, wanted.to(value.dtype) + 0.0)
    if value.dtype in HALVES:
        return rounded(value, wanted, item.bound.parameters)
    return expect.within(value, wanted, item.bound.parameters)


def rounded(value: Tensor, wanted: Tensor, bound: float) -> Comparison:
    """Whether a 16-bit value is the rounded image of what is within the bound: rounding keeps the order of numbers."""
    low, high = ((wanted + sign * bound).to(value.dtype).double() for sign in (-1, 1))
    wide = value.double()
    if wide.shape == low.shape and bool(((low <= wide) & (wide <= high)).all()):
        return expect.within(value, wanted, math.inf)
    return dataclasses.replace(expect.within(value, low, 0.0), expected=f"{wanted} within {bound:g}, rounded")


def _loss(value: float, wanted: float, bound: Bound | None) -> Comparison:
    if bound is None:
        return expect.same(value, wanted)
    return expect.within(
        torch.tensor(value, dtype=torch.double), torch.tensor(wanted, dtype=torch.double), bound.losses
    )


def _norm(value: float, wanted: float) -> Comparison:
    return expect.within(torch.tensor(value), torch.tensor(wanted), NORM_BOUND * wanted)
