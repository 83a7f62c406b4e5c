"""The yardstick of sharded training, measured with another one: torch's optimizers, arithmetic."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from conformance.loop.single import batches, joined
from conformance.zero import single
from conformance.zero.equivalence import rounded
from conformance.zero.plan import Plan, rows_for_layers
from fixtures import models

GROUPS = [["bias", {"lr": 0.02, "weight_decay": 0.0}, 0], ["", {"weight_decay": 0.2}, 0]]
RULES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.5, 0.9)}),
    ("AdamW", {"lr": 0.05}),
]


def _with_torch(plan: Plan, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """The same on the joined rows, with torch's own optimizer."""
    module = plan.build().to(dtype)
    named = dict(module.named_parameters())
    groups = [
        {"params": [p for name, p in named.items() if plan.group_of(name) == index], **options}
        for index, (_, options, _) in enumerate(plan.groups or [])
    ]
    optimizer = getattr(torch.optim, plan.optimizer)(groups or module.parameters(), **plan.options)
    for by_rank in plan.data:
        optimizer.zero_grad()
        x, target = joined([micro[0] for micro in by_rank])
        models.squared(module(x.to(dtype)), target, 1.0).backward()
        if plan.max_norm is not None:
            torch.nn.utils.clip_grad_norm_(module.parameters(), plan.max_norm)
        optimizer.step()
    return {name: p.detach() for name, p in module.named_parameters(remove_duplicate=False)}


def _plan(**changes: Any) -> Plan:
    return Plan(data=batches(17, 3, steps=4, real=True), **changes)


@pytest.mark.parametrize(("optimizer", "options"), RULES)
@pytest.mark.parametrize("model", ["mlp", "tied", "frozen"])
def test_the_rules_written_out_are_those_of_torch(model: str, optimizer: str, options: dict[str, Any]) -> None:
    plan = _plan(model=model, optimizer=optimizer, options=options)
    assert single.apart(single.train(plan).steps[-1], _with_torch(plan)) < 1e-12


def test_groups_and_clipping_are_those_of_torch() -> None:
    plan = _plan(optimizer="AdamW", options={"lr": 0.05}, groups=GROUPS)
    assert single.apart(single.train(plan).steps[-1], _with_torch(plan)) < 1e-12
    clipped = _plan(max_norm=0.5)
    assert single.apart(single.train(clipped).steps[-1], _with_torch(clipped)) < single.CLIPS_AT


@pytest.mark.parametrize(("optimizer", "options"), RULES)
def test_the_bound_is_above_what_float32_does_and_far_below_what_faults_do(
    optimizer: str, options: dict[str, Any]
) -> None:
    plan = _plan(model="uneven", optimizer=optimizer, options=options)
    run, bound = single.yardstick(plan)
    slightly_wrong = single.train(dataclasses.replace(plan, options={**options, "lr": options["lr"] * 1.02}))
    error = single.apart(_with_torch(plan, torch.float32), run.steps[-1])
    assert error < bound.parameters < single.apart(slightly_wrong.steps[-1], run.steps[-1])


def test_an_exact_run_that_is_not_is_told() -> None:
    data = rows_for_layers([[3]], 2, steps=4)
    assert single.exact_yardstick(Plan(data=data, shapes=[[3]], real=False, loss="weighted", options={"lr": 0.25}))
    with pytest.raises(AssertionError, match="float32 has to round"):
        single.exact_yardstick(_plan())


@pytest.mark.parametrize(
    ("value", "fits"), [(1.0, True), (1.0 - 2.0**-8, False), (1.0 + 2.0**-7, False)], ids=["right", "below", "above"]
)
def test_a_16_bit_value_is_the_rounded_image_or_not(value: float, fits: bool) -> None:
    wanted = torch.tensor([1.0 + 2.0**-10], dtype=torch.float64)
    assert rounded(torch.tensor([value], dtype=torch.bfloat16), wanted, 2.0**-20).matches is fits


def test_a_group_joins_at_its_step() -> None:
    plan = _plan(groups=[["head.bias", {}, 0], ["", {}, 2]])
    run = single.train(plan)
    assert torch.equal(run.steps[1]["hidden.weight"], run.start["hidden.weight"])
    assert not torch.equal(run.steps[2]["hidden.weight"], run.start["hidden.weight"])
    assert not torch.equal(run.steps[0]["head.bias"], run.start["head.bias"])
