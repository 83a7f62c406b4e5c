"""What the order overlaps: forwards and backwards paired in one action, and gaps that weight gradients fill."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.idle import mean, percent, timeline
from conformance.pipeline.judged import Asked, legal
from conformance.verdict import Witness
from impls.reference.pipeline.actions import Action, Kind, Schedule
from impls.reference.pipeline.counts import paired_share

SIZES = [(2, 4), (4, 8), (4, 16)]
LEAST, MOST = Fraction(80, 100), Fraction(90, 100)  # at N = 8, M = 64, where 82 to 87 % are paired


def _judge_unpaired(judge: Judge, asked: Asked, schedule: Schedule) -> None:
    for rank, actions in enumerate(schedule):
        for place, action in enumerate(actions):
            if action.beside is not None:
                judge.violated(
                    f"{asked}: rank {rank} does {action} as one overlapped action (number {place + 1} of its list). "
                    "Merged so it is a combined schedule, to be named one",
                    expected="no forward paired with a backward",
                    observed=str(action),
                    witness=Witness.SIMULATION,
                )


@claim("pipeline.overlap.1f1b", provides=["one_f_one_b"])
def test_order_of_1f1b_pairs_nothing(subject: Subject, judge: Judge) -> None:
    asked = [Asked("one_f_one_b", *size) for size in SIZES]
    for one, schedule in zip(asked, legal(subject, judge, asked), strict=True):
        _judge_unpaired(judge, one, schedule)
    judge.holds(
        expected="0 %",
        observed="0 %",
        witness=Witness.SIMULATION,
        message="of forwards and backwards are paired in one action, on every rank",
        examples=len(asked),
    )


# -- Zero Bubble -------------------------------------------------------------------------------------------------------


@claim("pipeline.overlap.zb", provides=["zb_h1|zb_h2|zbv"])
def test_weight_gradients_fill_gaps_and_nothing_is_paired(subject: Subject, judge: Judge) -> None:
    for name in filter(subject.has, ("zb_h1", "zb_h2", "zbv")):
        asked = [Asked(name, *size) for size in SIZES]
        for one, schedule in zip(asked, legal(subject, judge, asked), strict=True):
            _judge_unpaired(judge, one, schedule)
            _judge_filled(judge, one, schedule)


def _judge_filled(judge: Judge, asked: Asked, schedule: Schedule) -> None:
    """Idle time is less than where every W comes right after its I."""
    own, glued = (mean(timeline(each).bubble()) for each in (schedule, _glued(schedule)))
    if own >= glued:
        judge.violated(
            f"{asked}: a rank idles for {own}, and for {glued} where every W comes right after its I: W fills no gap",
            expected=f"less than {glued}",
            observed=str(own),
            witness=Witness.SIMULATION,
        )
    judge.holds(
        expected=f"less than {glued}",
        observed=str(own),
        witness=Witness.SIMULATION,
        message=f"{asked}, F = I = W = 1: idle time of a rank, against that with every W right after its I; 0 % of "
        "forwards and backwards are paired",
    )


def _glued(schedule: Schedule) -> Schedule:
    """The same order with every W right after its I; what is whole stays so."""

    def row(actions: Sequence[Action]) -> list[Action]:
        found = []
        for action in actions:
            if action.kind is not Kind.WEIGHT:
                found.append(action)
            if action.kind is Kind.INPUT:
                found.append(Action(Kind.WEIGHT, action.stage, action.microbatch))
        return found

    return Schedule.from_actions(
        schedule.name, schedule.num_microbatches, schedule.placement, [row(actions) for actions in schedule]
    )


# -- DualPipe and DualPipeV --------------------------------------------------------------------------------------------


def _judge_paired(subject: Subject, judge: Judge, name: str) -> None:
    asked = [Asked(name, 8, count) for count in (16, 32, 64)]
    shares = []
    for one, schedule in zip(asked, legal(subject, judge, asked), strict=True):
        _judge_pairs(judge, one, schedule)
        shares.append(sorted(paired_share(schedule)))
    told = [f"{percent(each[0])} to {percent(each[-1])}" for each in shares]
    if shares[-1][0] < LEAST or shares[-1][-1] > MOST:
        judge.violated(
            f"{asked[-1]} pairs {told[-1]} of the ranks' forwards and backwards in one action",
            expected="82 to 87 %: most, and never all",
            observed=told[-1],
            witness=Witness.SIMULATION,
        )
    if [each[0] for each in shares] != sorted({each[0] for each in shares}):
        judge.violated(
            f"{name} on 8 ranks: the share that is paired does not rise with M",
            expected="a share that rises with M",
            observed=", ".join(told),
            witness=Witness.SIMULATION,
        )
    judge.holds(
        expected="82 to 87 % at N = 8 and M = 64, neither none nor all",
        observed=told[-1],
        witness=Witness.SIMULATION,
        message=f"{name}, N = 8: paired chunks by rank are {told[0]} at M = 16, {told[1]} at 32, {told[2]} at 64",
        examples=len(asked),
    )


def _judge_pairs(judge: Judge, asked: Asked, schedule: Schedule) -> None:
    """The two of a pair travel in opposite ways: on the two stages of the rank."""
    for rank, actions in enumerate(schedule):
        for action in actions:
            if action.beside is not None and action.stage == action.beside.stage:
                judge.violated(
                    f"{asked}: rank {rank} pairs {action}, both of stage {action.stage}: what overlaps is the forward "
                    "of one of its two stages and the backward of the other",
                    expected="pairs of the rank's two stages",
                    observed=str(action),
                    witness=Witness.SIMULATION,
                )


@claim("pipeline.overlap.dualpipe", provides=["dualpipe"])
def test_dualpipe_pairs_most_and_never_all(subject: Subject, judge: Judge) -> None:
    _judge_paired(subject, judge, "dualpipe")


@claim("pipeline.overlap.dualpipev", provides=["dualpipev"])
def test_dualpipev_pairs_as_much_as_dualpipe(subject: Subject, judge: Judge) -> None:
    _judge_paired(subject, judge, "dualpipev")
