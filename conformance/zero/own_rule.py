"""Which update rule an optimizer of the implementation's own choice follows: found out in a world of one rank.

`ZeroOptimizer(model, world_size, rank, lr)` takes no optimizer. What it does alone is its rule; with more ranks it has
to do the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.checks import Broken, Subject
from conformance.loop.single import joined as joined_rows
from conformance.verdict import Verdict
from conformance.zero import single, value_programs
from conformance.zero.plan import UNKNOWN, Plan, parts, rows_for_layers
from conformance.zero.single import Run
from fixtures.tolerances import unit_roundoff

# What people build in: torch's defaults (a weight decay of 0.01 for AdamW), and what large models are trained with.
RULES: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("SGD", {}),
    ("Adam", {}),
    ("AdamW", {}),
    ("SGD", {"momentum": 0.9}),
    ("AdamW", {"weight_decay": 0.1}),
    ("Adam", {"betas": (0.9, 0.95)}),
    ("AdamW", {"betas": (0.9, 0.95)}),
    ("AdamW", {"betas": (0.9, 0.95), "weight_decay": 0.1}),
    ("Adam", {"eps": 1e-6}),
    ("Adam", {"eps": 1e-5}),
)
SHAPES = [[5], [2, 3]]
STEPS = 4
LR = 0.5  # large, so that 16 bits show AdamW's decay


def where_it_chooses(subject: Subject, stage: str, world_size: int, plans: Sequence[Plan]) -> list[Plan]:
    """The plans with the optimizer that they will meet; those that are the same then are left out.

    So are models with integers for another rule than SGD: where a unit's input is exactly 0, no bound holds.
    """
    if not subject.run(value_programs.chooses, world_size, stage).values[0]:
        return list(plans)
    rule, options = _rule(subject, stage, plans[0].dtype)
    own = [
        dataclasses.replace(plan, optimizer=rule, options={"lr": plan.options["lr"], **options})
        for plan in plans
        if (rule, options) == RULES[0] or plan.shapes is not None or not plan.is_exact
    ]
    return list({_key(plan): plan for plan in own}.values())


def _key(plan: Plan) -> tuple[int, str]:
    return id(plan.data), repr({name: value for name, value in plan.fields().items() if name != "data"})


def alone(subject: Subject, stage: str, plan: Plan) -> Run:
    """What the implementation makes of a plan on one rank, which has the rows of all."""
    if plan.active is not None:
        raise Broken(Verdict.NOT_PROVIDED, f"{subject.name} follows a rule that is not known, so no yardstick has it")
    joined = [[[joined_rows(pieces) for pieces in zip(*by_rank, strict=True)]] for by_rank in plan.data]
    own = parts([dataclasses.replace(plan, data=joined)], 1)
    (report,) = subject.run(value_programs.train, 1, stage, own).values[0]
    start = {name: p.detach().clone() for name, p in plan.build().named_parameters(remove_duplicate=False)}
    return Run(start=start, steps=report["steps"], losses=[], norms=report["norms"])


def known() -> str:
    """The rules that are recognised, in words."""
    return ", ".join(f"{rule}({', '.join(f'{name}={value}' for name, value in more.items())})" for rule, more in RULES)


def _rule(subject: Subject, stage: str, dtype: torch.dtype | None) -> tuple[str, Mapping[str, Any]]:
    plan = Plan(
        data=rows_for_layers(SHAPES, 1, steps=STEPS, real=True),
        shapes=SHAPES,
        dtype=dtype,
        loss="weighted",
        optimizer=UNKNOWN,
        options={"lr": LR},
    )
    (report,) = subject.run(value_programs.train, 1, stage, parts([plan], 1)).values[0]
    if "missing" in report:
        raise Broken(Verdict.NOT_PROVIDED, report["missing"])
    start = {name: parameter.detach() for name, parameter in plan.build().named_parameters()}
    if all(torch.equal(report["steps"][-1][name], value) for name, value in start.items()):
        raise Broken(Verdict.VIOLATED, f"no parameter changes in {STEPS} steps on one rank: is the update copied back?")
    for rule, options in RULES:
        known = dataclasses.replace(plan, optimizer=rule, options={"lr": LR, **options})
        run = single.train(known)
        bound = single.rounding_bound(known, run).parameters
        if all(_is_near(report["steps"][-1][name], wanted, bound) for name, wanted in run.steps[-1].items()):
            return rule, options
    return UNKNOWN, {}


def _is_near(value: torch.Tensor, wanted: torch.Tensor, bound: float) -> bool:
    rounding = unit_roundoff(value.dtype) * float(wanted.abs().max())
    return bool(((value.double() - wanted).abs() <= bound + rounding).all())
