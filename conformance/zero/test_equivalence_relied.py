"""What people rely on when they change one line: schedules of any option, long runs, large tensors, 16 bits, groups."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import expect
from conformance.checks import Judge, Pool, Subject
from conformance.loop.judging import Named, judge_all
from conformance.loop.single import FLOAT32_UNIT, batches
from conformance.zero import own_rule, relied_programs, single, value_programs
from conformance.zero.equivalence import judge_trained, stages, trained
from conformance.zero.plan import UNKNOWN, Plan, parts, rows_for_layers
from conformance.zero.relied_programs import SIDES, Relied
from conformance.zero.single import Weights

SGD: dict[str, Any] = {"optimizer": "SGD", "options": {"lr": 0.1, "momentum": 0.9}}
ADAMW: dict[str, Any] = {"optimizer": "AdamW", "options": {"lr": 0.05, "betas": (0.5, 0.9), "eps": 0.1}}
GROUPS = [["wide.weight", {"weight_decay": 0.1}, 0], ["", {"lr": 0.02, "weight_decay": 0.2}, 0]]
FEW_STEPS, STEPS = 6, 10
SCHEDULE = [[2, 1, {"lr": 0.2, "weight_decay": 0.0}], [3, 0, {"lr": 0.02, "weight_decay": 0.5}]]
SHAPES = [[3, 5], [2, 3, 2], [7]]
MANY = [[40, 15], [7]]
EXACT = {"lr": 0.25, "momentum": 0.5}
PHASES = [False, True, True, False, False, True]
OTHER_OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.25, "momentum": 0.5, "nesterov": True}),
    ("SGD", {"lr": 0.25, "momentum": 0.5, "dampening": 0.5}),
    ("SGD", {"lr": 0.25, "maximize": True}),
    ("Adam", {"lr": 0.25, "betas": (0.5, 0.6), "eps": 0.5}),
    ("Adam", {"lr": 0.25, "betas": (0.5, 0.6), "amsgrad": True}),
]


def _judge(subject: Subject, judge: Judge, stage: str, world_size: int, plans: Sequence[Relied]) -> None:
    """Train by the plans, each in its way, and compare with a single process."""
    if subject.run(value_programs.chooses, 1, stage).values[0]:  # Adam magnifies too much in the large model
        plans = [plan for plan in plans if plan.model != "large"]
    chosen = own_rule.where_it_chooses(subject, stage, world_size, plans) if plans else []
    if not chosen or any(plan.optimizer == UNKNOWN for plan in chosen):
        judge.not_provided(f"{subject.name} has a rule of its own, and this is about what torch's optimizers do")
    by_plan = list(zip(chosen, _reports(subject, stage, world_size, chosen), strict=True))
    done = [trained(subject, stage, plan, ranks) for plan, ranks in by_plan if "missing" not in ranks[0]]
    if not done:
        judge.not_provided(by_plan[0][1][0]["missing"])
    judge_trained(judge, done)


def _reports(
    subject: Subject, stage: str, world_size: int, plans: Iterable[Plan], *, is_trial: bool = False
) -> list[list[dict[str, Any]]]:
    """By plan, then by rank."""
    own = parts(list(plans), world_size)
    reports = subject.run(relied_programs.train, world_size, stage, own, is_trial=is_trial).values
    return [list(ranks) for ranks in zip(*reports, strict=True)]


@functools.cache
def large(world_size: int, steps: int) -> Relied:
    """Two microbatches to a step; everything else to be chosen."""
    data = batches(41, world_size, steps=steps, rows=2, micro=2, real=True)
    return Relied(data=data, model="large", sees_all=False, **SGD)


@functools.cache
def scheduled_and_plain(world_size: int) -> list[Relied]:
    """Ten steps in which every option of two groups changes, at different times; and two without groups."""
    schedule = [*SCHEDULE, [5, 1, {"momentum": 0.5}], [7, 0, {"momentum": 0.3, "lr": 0.1}], [8, 1, {"lr": 0.05}]]
    plan = large(world_size, STEPS)
    return [dataclasses.replace(plan, groups=GROUPS, written=schedule), plan.part(slice(2))]


@functools.cache
def clipped(world_size: int) -> list[Relied]:
    """Two groups, a tied weight and two microbatches count for the norm; and the same without groups."""
    plan = large(world_size, 3)
    max_norm = min(single.train(plan).norms) / 4
    plan = dataclasses.replace(plan, max_norm=max_norm)
    return [dataclasses.replace(plan, groups=GROUPS), plan]


@functools.cache
def resumed(world_size: int) -> list[Relied]:
    """Options of two groups have changed when the state is saved; the fresh optimizer is built with the old ones."""
    data = batches(43, world_size, steps=FEW_STEPS, real=True)
    groups = [["hidden.weight", {"weight_decay": 0.1}, 0], ["", {"lr": 0.02, "weight_decay": 0.2}, 0]]
    plan = Relied(data=data, groups=groups, written=SCHEDULE, way="saved_and_resumed", at=4)
    return [dataclasses.replace(plan, **how) for how in (SGD, ADAMW)]


@pytest.mark.parametrize("stage", stages("1", "2", tier="contract"))
def test_every_option_may_change_in_a_long_run_of_a_large_model(subject: Subject, judge: Judge, stage: str) -> None:
    _judge(subject, judge, stage, 4, scheduled_and_plain(4))


@pytest.mark.parametrize("stage", stages("1", "2", tier="contract"))
def test_clipping_counts_every_group_and_tied_weights_once(subject: Subject, judge: Judge, stage: str) -> None:
    _judge(subject, judge, stage, 4, clipped(4))


@pytest.mark.parametrize("stage", stages("1", "2", tier="contract"))
def test_a_saved_state_has_the_options_of_each_group(subject: Subject, judge: Judge, stage: str) -> None:
    _judge(subject, judge, stage, 3, resumed(3))


# -- 16 bits -----------------------------------------------------------------------------------------------------------


@functools.cache
def in_16_bits(world_size: int) -> list[Relied]:
    """Gradients that bfloat16 has exactly, straight on and resumed."""
    data = rows_for_layers(MANY, world_size, steps=12, seed=3)
    options = {"lr": 2.0**-6, "momentum": 0.5}
    plan = Relied(data=data, shapes=MANY, dtype=torch.bfloat16, real=False, loss="weighted", options=options, at=6)
    return [plan, dataclasses.replace(plan, way="saved_and_resumed")]


def rules_in_16_bits(plan: Plan) -> dict[str, list[Weights]]:
    """The parameters after each step, rounded from FP32 masters, and as torch's SGD has them on bfloat16 ones."""
    start = {name: p.detach().float() for name, p in plan.build().named_parameters()}
    by_rule: dict[str, list[Weights]] = {}
    for rule, kept_in in (("FP32 masters", torch.float32), ("16 bits throughout", torch.bfloat16)):
        weights, velocity, steps = dict(start), {name: torch.zeros_like(p) for name, p in start.items()}, []
        for step in range(len(plan.data)):
            for name, gradient in zip(start, gradients_of(plan, step), strict=True):
                velocity[name] = (plan.options["momentum"] * velocity[name] + gradient).to(kept_in).float()
                weights[name] = (weights[name] - plan.options["lr"] * velocity[name]).to(kept_in).float()
            steps.append({name: value.bfloat16() for name, value in weights.items()})
        by_rule[rule] = steps
    return by_rule


def gradients_of(plan: Plan, step: int) -> list[Tensor]:
    """The mean over ranks of the gradients of layers side by side: of the rows themselves."""
    assert plan.shapes is not None
    rows = torch.stack([x for micro in plan.data[step] for x, _ in micro]).double().mean(0)[0]
    parts = torch.split(rows.float(), [int(torch.Size(shape).numel()) for shape in plan.shapes])
    return [part.view(*shape) for part, shape in zip(parts, plan.shapes, strict=True)]


def _as_ruled(ranks: Sequence[dict[str, Any]], wanted: Sequence[Weights]) -> Iterable[Named]:
    for rank, report in enumerate(ranks):
        for step, (values, of_step) in enumerate(zip(report["steps"], wanted, strict=True)):
            for name, value in of_step.items():
                yield f"step {step}, rank {rank}, {name}", expect.same(values[name] + 0.0, value + 0.0)


@pytest.mark.parametrize("stage", stages("1", "2", tier="contract"))
def test_parameters_of_16_bits_follow_one_rule_on_any_number_of_ranks(
    subject: Subject, judge: Judge, stage: str
) -> None:
    """With FP32 masters or without: which of the two is found out on one rank."""
    if subject.run(value_programs.chooses, 1, stage).values[0]:
        judge.not_provided(f"{subject.name} has a rule of its own, and this is exact with SGD only")
    (trial,) = _reports(subject, stage, 1, in_16_bits(1)[:1], is_trial=True)
    if "missing" in trial[0]:
        judge.not_provided(f"16-bit parameters are not taken: {trial[0]['missing']}")
    masters, throughout = (by_rule := rules_in_16_bits(in_16_bits(1)[0])).values()
    assert not expect.same(masters[-1], throughout[-1]).matches, "the rules cannot be told apart"
    followed = [rule for rule in by_rule if all(found.matches for _, found in _as_ruled(trial, by_rule[rule]))]
    rule = followed[0] if followed else "FP32 masters"
    how = f"16-bit parameters, SGD with {rule}"
    if not followed:
        judge_all(judge, _as_ruled(trial, by_rule[rule]), f"{how} (nor is it 16 bits throughout)")
    plans = in_16_bits(4)
    by_plan = zip(plans, _reports(subject, stage, 4, plans), strict=True)
    found = [
        (f"{plan.way}, {where}", comparison)
        for plan, ranks in by_plan
        if "missing" not in ranks[0]
        for where, comparison in _as_ruled(ranks, rules_in_16_bits(plan)[rule])
    ]
    judge_all(judge, found, how)


# -- process groups ----------------------------------------------------------------------------------------------------


@functools.cache
def of_four_ranks() -> tuple[Relied, list[Relied]]:
    """Rows for four ranks; and the plans of the two halves, as if each were alone."""
    whole = Relied(data=batches(47, 4, steps=3, real=True), **SGD)
    sides = [dataclasses.replace(whole, data=[[step[rank] for rank in side] for step in whole.data]) for side in SIDES]
    return whole, sides


@pytest.mark.parametrize("stage", stages("1", "2", tier="contract"))
def test_two_process_groups_train_apart(subject: Subject, judge: Judge, stage: str) -> None:
    whole, sides = of_four_ranks()
    if subject.run(value_programs.chooses, 1, stage).values[0]:
        judge.not_provided(f"{subject.name} has a rule of its own, and this is about SGD")
    reports = subject.run(relied_programs.in_two_groups, 4, stage, whole.parts(4)).values
    judge_trained(
        judge,
        [
            trained(subject, stage, plan, [reports[rank] for rank in side])
            for plan, side in zip(sides, SIDES, strict=True)
        ],
    )


# -- what is rare ------------------------------------------------------------------------------------------------------


@functools.cache
def refrozen(world_size: int) -> Relied:
    """A layer that is frozen at first, learns, is frozen and learns again; decay and momentum would move it on."""
    return Relied(
        data=batches(53, world_size, steps=len(PHASES), real=True),
        model="refrozen",
        unused=[0],
        active=[[is_learning] * world_size for is_learning in PHASES],
        options={"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
    )


@pytest.mark.parametrize("stage", stages("1", "2", tier="exotic"))
def test_what_is_frozen_again_stays(subject: Subject, judge: Judge, stage: str) -> None:
    """Who takes no gradient for one of zeros does so from the first step on, as for a layer that is never used."""
    if subject.run(value_programs.chooses, 1, stage).values[0]:
        judge.not_provided(f"{subject.name} has a rule of its own, and this is about momentum and decay")
    plan = refrozen(3)
    (ranks,) = _reports(subject, stage, 3, [plan])
    if "missing" in ranks[0]:
        judge.not_provided(ranks[0]["missing"])
    start, last = dict(plan.build().named_parameters()), [report["steps"][-1] for report in ranks]
    if any(not torch.equal(values["layer0.weight"], start["layer0.weight"]) for values in last):
        judge.not_provided("no gradient counts as one of zeros: a layer that no rank uses decays from the first step")
    if all(torch.equal(values["late.weight"], start["late.weight"]) for values in last):
        judge.not_provided("what is frozen when the optimizer is built is not trained later")
    judge_trained(judge, [trained(subject, stage, plan, ranks)])


@functools.cache
def exact_and_rare(world_size: int) -> list[Relied]:
    """Parameters whose elements lie in another order; gradients set to zeros; a step that calls for them."""
    data = rows_for_layers(SHAPES, world_size, steps=3, seed=5)
    plan = Relied(data=data, shapes=SHAPES, real=False, is_exact=True, loss="weighted", options=EXACT)
    return [
        dataclasses.replace(plan, is_strided=True),
        dataclasses.replace(plan, way="zeroed_in_place"),
        dataclasses.replace(plan, way="by_closure"),
    ]


@pytest.mark.parametrize("stage", stages("1", "2", tier="exotic"))
def test_six_ranks_train_strided_parameters(subject: Subject, judge: Judge, stage: str) -> None:
    _judge(subject, judge, stage, 6, exact_and_rare(6)[:1])


@pytest.mark.parametrize("stage", stages("1", "2", tier="exotic"))
def test_zero_grad_may_leave_zeros(subject: Subject, judge: Judge, stage: str) -> None:
    _judge(subject, judge, stage, 3, exact_and_rare(3)[1:2])


@pytest.mark.parametrize("stage", stages("1", "2", tier="exotic"))
def test_a_step_may_be_given_a_closure(subject: Subject, judge: Judge, stage: str) -> None:
    _judge(subject, judge, stage, 3, exact_and_rare(3)[2:])


@functools.cache
def with_other_options(world_size: int) -> list[Relied]:
    """A few steps for each."""
    data = rows_for_layers(SHAPES, world_size, steps=4, seed=7)
    plan = Relied(data=data, shapes=SHAPES, real=False, loss="weighted")
    return [dataclasses.replace(plan, optimizer=name, options=options) for name, options in OTHER_OPTIONS]


@pytest.mark.parametrize("stage", stages("1", "2", tier="exotic"))
def test_every_option_of_the_optimizer_arrives(subject: Subject, judge: Judge, worlds: Pool, stage: str) -> None:
    """The yardstick is torch's optimizer itself, on the mean gradient, in a process without an implementation."""
    if subject.run(value_programs.chooses, 1, stage).values[0]:
        judge.not_provided(f"{subject.name} takes no optimizer, and so none of its options")
    plans, found = with_other_options(3), []
    for plan, ranks in zip(plans, _reports(subject, stage, 3, plans), strict=True):
        if "missing" in ranks[0]:
            continue
        start = {name: p.detach() for name, p in plan.build().named_parameters()}
        gradients = [gradients_of(plan, step) for step in range(len(plan.data))]
        alone = worlds.world(1, bare=True)
        values = alone.run(relied_programs.alone, plan.optimizer, plan.options, [*start.values()], gradients).values[0]
        wanted = dict(zip(start, values, strict=True))
        bound = 64 * len(plan.data) * FLOAT32_UNIT * max(float(value.abs().max()) for value in values)
        found += [
            (f"{plan.called}, rank {rank}, {name}", expect.within(report["steps"][-1][name], value, bound))
            for rank, report in enumerate(ranks)
            for name, value in wanted.items()
        ]
    if not found:
        judge.not_provided(f"{subject.name} takes none of these options")
    judge_all(judge, found, "options that few use, against torch's optimizer in one process")
