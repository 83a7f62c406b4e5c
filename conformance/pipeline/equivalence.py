"""How a pipeline is compared with a single process: every case, every rank, every parameter of every stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import expect
from conformance.checks import Judge, Subject, optional
from conformance.expect import Comparison
from conformance.hints.patterns import pattern
from conformance.judge import Broken
from conformance.loop.judging import Named, judge_all
from conformance.pipeline import offered, programs
from conformance.pipeline.case import Case, loss_ranks, placement, shares
from conformance.pipeline.single import Run, alone
from conformance.verdict import Verdict
from fixtures.world.per_rank import PerRank

SCHEDULES = ("gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_h2", "zbv", "dualpipe", "dualpipev")
PLAIN = ("gpipe", "1f1b")
AS_1F1B = optional("train_step.1f1b")  # a pipeline that runs GPipe alone is as good a pipeline


def schedules(*names: str, check_of: pytest.MarkDecorator) -> list[Any]:
    """Parameters for a check of these schedules; `check_of` is the claim."""
    return [pytest.param(name, marks=check_of, id=name) for name in names]


def trained(
    subject: Subject, judge: Judge, schedule: str, world_size: int, cases: Sequence[Case]
) -> list[tuple[Case, Run, list[programs.Report]]]:
    """The cases that the implementation takes, each with the yardstick and the report of every rank."""
    by_case = list(zip(cases, _reports(subject, world_size, schedule, cases), strict=True))
    reasons = [rank["missing"] for _, ranks in by_case for rank in ranks if "missing" in rank]
    num_stages = placement(schedule, world_size).num_stages
    done = [
        (case, alone(case, num_stages), list(ranks))
        for case, ranks in by_case
        if not any("missing" in rank for rank in ranks)
    ]
    if not done:
        judge.not_provided(reasons[0])
    return done


def _reports(
    subject: Subject, world_size: int, schedule: str, cases: Sequence[Case]
) -> list[tuple[programs.Report, ...]]:
    """By case and rank. What refuses a case in the middle of it leaves others waiting: then each is run by itself."""
    try:
        own = shares(cases, schedule, world_size)
        return list(zip(*offered.run(subject, programs.train, world_size, schedule, own).values, strict=True))
    except Broken as broken:
        if len(cases) == 1 and broken.verdict is Verdict.NOT_PROVIDED:
            return [({"missing": broken.message},)]
        if len(cases) == 1 or broken.verdict is not Verdict.HANGS:
            raise
    return [found for one in cases for found in _reports(subject, world_size, schedule, [one])]


def judge_cases(subject: Subject, judge: Judge, schedule: str, world_size: int, cases: Sequence[Case]) -> None:
    """Gradients of all stages as in a single process; weights, and what learns, as they were."""
    done = trained(subject, judge, schedule, world_size, cases)
    for real in (False, True):
        chosen = [item for item in done if item[0].real == real]
        if chosen:
            how = "within the bound of rounding" if real else "bit for bit"
            found = (named for item in chosen for named in _findings(*item))
            judge_all(judge, found, f"gradients of a pipeline {_under(schedule, done)} against a single process, {how}")


def judge_on_some(
    subject: Subject, judge: Judge, schedule: str, world_size: int, members: Sequence[int], case: Case
) -> None:
    """The same for a pipeline of some ranks of the world, `members`, given as a group."""
    places = placement(schedule, len(members))
    shared = PerRank([case.share(places, members.index(r)) if r in members else None for r in range(world_size)])
    reports = offered.run(subject, programs.train_on_some, world_size, schedule, shared, list(members)).values
    run = alone(case, places.num_stages)
    own = [reports[rank] for rank in members]
    where = f"ranks {list(members)} {_under(schedule, [(case, run, own)])}"
    judge_all(judge, _findings(case, run, own), f"gradients of a pipeline of {where}, bit for bit")


def judge_losses(subject: Subject, judge: Judge, schedule: str, world_size: int, case: Case) -> None:
    """The losses where the last stage is, in order, or their mean."""
    done = trained(subject, judge, schedule, world_size, [case])
    ((case, run, ranks),) = done
    if not any(report["losses"][-1] for report in ranks):
        judge.not_provided(f"{subject.name} returns no losses")
    found = [
        (f"{case.called}, rank {rank}", _losses(ranks[rank]["losses"][-1], [run.losses[m] for m in microbatches]))
        for rank, microbatches in loss_ranks(schedule, world_size, len(case.sizes)).items()
    ]
    judge_all(judge, found, f"losses of a pipeline {_under(schedule, done)} against a single process")


def _under(schedule: str, done: Sequence[tuple[Case, Run, Sequence[programs.Report]]]) -> str:
    """How a sentence calls the order that was examined: what cannot be told which has one of its own."""
    (_, _, (first, *_)), *_ = done
    return f"under {schedule}" if first["schedule"] else "in the one order that it has"


def _findings(case: Case, run: Run, ranks: Sequence[programs.Report]) -> Iterator[Named]:
    for rank, report in enumerate(ranks):
        yield f"{case.called}, rank {rank}, weights that are not as before", expect.same(report["changed"], [])
        for stage, gradients in report["gradients"].items():
            for name, found in gradients.items():
                where = f"{case.called}, rank {rank}, {name} of stage {stage}"
                yield where, _gradient(run, int(stage), name, found)


def _gradient(run: Run, stage: int, name: str, found: Tensor | None) -> Comparison:
    """No gradient and zeros are the same; -0.0 is 0.0."""
    wanted = run.gradients[stage][name]
    if found is None or wanted is None:
        present = found if wanted is None else wanted
        if present is None or not present.any():
            return expect.same("none", "none")
        return expect.same(expect.show(found), expect.show(wanted))
    if run.bounds is None:
        return expect.same(found + 0.0, wanted + 0.0)
    bound = run.bounds[stage][name]
    assert bound is not None
    return _within(found, wanted, bound)


def _within(found: Tensor, wanted: Tensor, bound: Tensor) -> Comparison:
    """Each element within its own bound."""
    if found.shape != wanted.shape:
        return expect.within(found, wanted, 0.0)
    share = (found.double() - wanted).abs() / bound
    worst = int(share.nan_to_num(nan=float("inf")).argmax())
    pick = [each.double().flatten()[worst : worst + 1] for each in (found, wanted, bound)]
    comparison = expect.within(pick[0], pick[1], float(pick[2]))
    outside = f"{int((share > 1).sum())} of {found.numel()} elements are outside their bounds, element {worst} the most"
    return (
        comparison
        if comparison.matches
        else dataclasses.replace(comparison, message=outside, pattern=pattern(found, wanted))
    )


def _losses(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> Comparison:
    told, expected = [float(each) for each in found], [float(each) for each in wanted]
    if len(told) == 1 < len(expected):
        expected = [sum(expected) / len(expected)]
    return expect.same(torch.tensor(told, dtype=torch.double), torch.tensor(expected, dtype=torch.double))
