"""How many copies of the parameters a schedule keeps, by who runs which stage: over the group, and on each device."""

from __future__ import annotations

from fractions import Fraction

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.judged import Asked, returned
from conformance.verdict import Witness
from impls.reference.pipeline.actions import Schedule
from impls.words import number_of

SIZES = {"dualpipe": [(2, 4), (4, 8), (6, 12)]}
OTHERS = [(1, 2), (2, 4), (3, 6), (4, 8)]


def _holders(schedule: Schedule) -> list[list[int]]:
    """For each stage the ranks that do anything of it."""
    runs = [{part.stage for action in actions for part in action.parts} for actions in schedule]
    return [[rank for rank, stages in enumerate(runs) if stage in stages] for stage in range(schedule.num_stages)]


def _judge_copies(subject: Subject, judge: Judge, name: str, copies: int) -> None:
    sizes = SIZES.get(name, OTHERS)
    for size in sizes:
        asked = Asked(name, *size)
        (found,) = returned(subject, judge, [asked])
        holders = _holders(found)
        _judge_stages(judge, asked, holders, copies)
        if name in ("dualpipe", "dualpipev", "zbv"):
            _judge_map(judge, asked, holders)
    held = sum(map(len, holders))
    over_group, per_device = Fraction(held, asked.num_stages), Fraction(held, asked.num_ranks)
    judge.holds(
        expected=f"{copies} over the pipeline group",
        observed=str(over_group),
        witness=Witness.SIMULATION,
        message=f"{asked}: the model is held {over_group} time(s) over the group's "
        f"{number_of(asked.num_ranks, 'rank')}. By device: "
        f"{per_device} of the {number_of(asked.num_stages, 'stage')} on each rank",
        examples=len(sizes),
    )


def _judge_stages(judge: Judge, asked: Asked, holders: list[list[int]], copies: int) -> None:
    if len(holders) != asked.num_stages:
        judge.violated(
            f"{asked}: expected {number_of(asked.num_stages, 'stage')}, got {len(holders)}",
            expected=f"{number_of(asked.num_stages, 'stage')}",
            observed=f"{number_of(len(holders), 'stage')}",
            witness=Witness.SIMULATION,
        )
    for stage, ranks in enumerate(holders):
        if len(ranks) != copies:
            judge.violated(
                f"{asked}: stage {stage} is run by {_ranks(ranks)}: expected {copies} of them, one for each copy",
                expected=f"{copies} rank(s) for each stage",
                observed=_ranks(ranks),
                witness=Witness.SIMULATION,
            )


def _judge_map(judge: Judge, asked: Asked, holders: list[list[int]]) -> None:
    """Rank r has stage r and the mirrored one, which follows it in the V, or comes to it from the other end."""
    last = asked.num_stages - 1
    for rank in range(asked.num_ranks):
        expected = sorted({rank, last - rank})
        found = [stage for stage, ranks in enumerate(holders) if rank in ranks]
        if found != expected:
            mirrored = "N-1-r" if asked.num_stages == asked.num_ranks else "2N-1-r"
            judge.violated(
                f"{asked}: rank {rank} runs stages {found}, and r and {mirrored} are {expected}",
                expected=f"stages {expected} on rank {rank}",
                observed=str(found),
                witness=Witness.SIMULATION,
            )


def _ranks(ranks: list[int]) -> str:
    return f"ranks {', '.join(map(str, ranks))}" if len(ranks) > 1 else f"rank {ranks[0]}" if ranks else "no rank"


@claim("pipeline.copies.1f1b", provides=["one_f_one_b"])
def test_1f1b_keeps_every_stage_once(subject: Subject, judge: Judge) -> None:
    _judge_copies(subject, judge, "one_f_one_b", 1)


@claim("pipeline.copies.zb", provides=["zb_h1|zb_h2|zbv"])
def test_zero_bubble_keeps_every_stage_once(subject: Subject, judge: Judge) -> None:
    for name in filter(subject.has, ("zb_h1", "zb_h2", "zbv")):
        _judge_copies(subject, judge, name, 1)


@claim("pipeline.copies.dualpipe", provides=["dualpipe"])
def test_dualpipe_keeps_every_stage_twice(subject: Subject, judge: Judge) -> None:
    _judge_copies(subject, judge, "dualpipe", 2)


@claim("pipeline.copies.dualpipev", provides=["dualpipev"])
def test_dualpipev_keeps_each_of_twice_as_many_stages_once(subject: Subject, judge: Judge) -> None:
    _judge_copies(subject, judge, "dualpipev", 1)
