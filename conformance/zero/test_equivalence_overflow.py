"""Dynamic loss scaling: one rank's overflow is a step less, and half the scale, for all ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject
from conformance.loop.judging import Named, judge_all
from conformance.zero import overflow_programs, value_programs
from conformance.zero.equivalence import Report, stages
from fixtures import models
from fixtures.world.per_rank import PerRank

LR = 16.0
OVERFLOWS = ["good", "inf", "good", "nan", "inf", "good"]
INTERVAL = 2
GROWING = ["good", "good", "good", "inf", "good", "good"]
SCALES = [256.0, 256.0, 512.0, 512.0, 256.0, 256.0, 512.0]
RESUMED = ["inf", "resume", "good"]
COUNTED = ["good", "resume", "good"]


def _run(
    subject: Subject, judge: Judge, world_size: int, kinds: list[str], extras: dict[str, Any], *, bad_rank: int = -1
) -> list[Report]:
    rows = PerRank([overflow_programs.rows(kinds, rank, bad_rank % world_size) for rank in range(world_size)])
    seeds = PerRank(models.own_seeds(5, world_size))
    reports = subject.run(overflow_programs.steps, world_size, rows, LR, extras, seeds).values
    if "missing" in reports[0]:
        judge.not_provided(reports[0]["missing"])
    return list(reports)


def _expected_move(reports: Sequence[Report], rank: int) -> torch.Tensor:
    """What a good step of SGD takes from the weights of a rank. [7]"""
    rows = [overflow_programs.row(other)[0] for other in range(len(reports))]
    gradient = torch.stack(rows).mean(0) if reports[0]["averages_itself"] else rows[rank]
    return (LR * gradient).to(torch.float16)


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_overflow_on_one_rank_leaves_the_step_out_on_all(
    subject: Subject, judge: Judge, stage: str, world_size: int
) -> None:
    has_own_rule = subject.run(value_programs.chooses, world_size, stage).values[0]
    for bad_rank in (0, world_size - 1):
        reports = _run(subject, judge, world_size, OVERFLOWS, {}, bad_rank=bad_rank)
        found = _overflows(reports, has_own_rule)
        judge_all(judge, found, f"float16 weights where rank {bad_rank}'s gradient alone is not finite")


def _overflows(reports: Sequence[Report], has_own_rule: bool) -> Iterator[Named]:
    for step, kind in enumerate(OVERFLOWS, start=1):
        for rank, report in enumerate(reports):
            before, after = report["weights"][step - 1 : step + 1]
            where = f"step {step} ({kind}), rank {rank}"
            if kind != "good":
                yield f"{where}, weights", expect.same(after, before)
            elif has_own_rule:
                yield f"{where}, weights moved", expect.same(bool((after != before).all()), True)
            else:
                yield f"{where}, weights", expect.same(after, before - _expected_move(reports, rank))
            if report["scales"][0] is not None and kind != "good":
                yield f"{where}, scale", expect.same(report["scales"][step], report["scales"][step - 1] / 2)


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@pytest.mark.parametrize("world_size", [2])
def test_loss_scale_grows_after_good_steps(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    extras = {"init_scale": SCALES[0], "growth_interval": INTERVAL}
    reports = _run(subject, judge, world_size, GROWING, extras)
    if reports[0]["scales"][0] is None:
        judge.not_provided(f"{subject.name}'s mixed precision has no loss_scale to read")
    found = [(f"rank {rank}", expect.same(report["scales"], SCALES)) for rank, report in enumerate(reports)]
    judge_all(
        judge, found, f"the loss scale at first and after each of {', '.join(GROWING)} steps, interval {INTERVAL}"
    )


@pytest.mark.parametrize("stage", stages("mixed", tier="contract"))
@pytest.mark.parametrize("world_size", [2])
def test_resumed_training_has_its_loss_scale(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    reports = _run(subject, judge, world_size, RESUMED, {})
    if reports[0]["scales"][0] is None:
        judge.not_provided(f"{subject.name}'s mixed precision has no loss_scale to read")
    scale = reports[0]["scales"][0]
    wanted = [scale, scale / 2, scale / 2, scale / 2]
    found = [(f"rank {rank}", expect.same(report["scales"], wanted)) for rank, report in enumerate(reports)]
    judge_all(judge, found, f"the loss scale at first and after each of {', '.join(RESUMED)}")


@pytest.mark.parametrize("stage", stages("mixed", tier="exotic"))
@pytest.mark.parametrize("world_size", [2])
def test_good_steps_are_counted_across_a_restart(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    extras = {"init_scale": SCALES[0], "growth_interval": INTERVAL}
    reports = _run(subject, judge, world_size, COUNTED, extras)
    if reports[0]["scales"][0] is None:
        judge.not_provided(f"{subject.name}'s mixed precision has no loss_scale to read")
    wanted = [SCALES[0], SCALES[0], SCALES[0], 2 * SCALES[0]]
    found = [(f"rank {rank}", expect.same(report["scales"], wanted)) for rank, report in enumerate(reports)]
    judge_all(judge, found, f"the loss scale at first and after each of {', '.join(COUNTED)}, interval {INTERVAL}")
