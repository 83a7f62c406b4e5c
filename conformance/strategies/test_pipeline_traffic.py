"""A pipeline sends activations and their gradients over the boundaries of its stages, and nothing else of size."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.case import placement
from conformance.pipeline.equivalence import AS_1F1B
from conformance.strategies import pipeline_programs as programs
from conformance.strategies.pipeline_traffic import Plan, Step, extras, fault_in
from conformance.verdict import Witness
from fixtures.witness.compare import in_window, reconcile
from fixtures.world.outcome import Outcomes
from impls.words import number_of

STEPS = 2
WIDTH, ROWS = 132, 48  # an activation of 25 KiB, a weight of 68: no part of one is taken for the other, or for a note
PIPELINE = ["train_step"]


def _observe(subject: Subject, schedule: str, world_size: int, *, tied: bool = False) -> Outcomes:
    return subject.run(
        programs.traffic,
        world_size,
        schedule,
        num_layers=1,
        width=WIDTH,
        rows=ROWS,
        micro=_microbatches(world_size),
        steps=STEPS,
        tied=tied,
    )


def _microbatches(world_size: int) -> int:
    """Enough for every schedule, and a multiple of N."""
    return 2 * world_size


def _steps(outcomes: Outcomes) -> list[Step]:
    return [
        Step.of([in_window(outcome.operations, outcome.marks, programs.window(index)) for outcome in outcomes])
        for index in range(STEPS)
    ]


def _judge_traffic(judge: Judge, outcomes: Outcomes, schedule: str) -> None:
    num_ranks = len(outcomes)
    plan = Plan(
        placement=placement(schedule, num_ranks),
        num_microbatches=_microbatches(num_ranks),
        activation_bytes=outcomes[0].value["activation_bytes"],
        shared_bytes={outcome.rank: outcome.value["shared_bytes"] for outcome in outcomes},
    )
    for index, step in enumerate(_steps(outcomes)):
        if fault := fault_in(step, plan):
            judge.violated(
                f"step {index} under {schedule}: {fault}",
                expected=f"for each microbatch and boundary {plan.activation_bytes:,} bytes forward and as many back",
                observed=_told(step),
                witness=Witness.TRACE,
                outcomes=outcomes,
            )
    step = _steps(outcomes)[-1]
    on_top = max(extras(step, plan).values(), default=0)
    judge.holds(
        expected=_told_counts({pair: count * plan.activation_bytes for pair, count in plan.crossings().items()}),
        observed=_told(step),
        witness=Witness.TRACE,
        unit="bytes",
        message=f"{number_of(plan.num_microbatches, 'microbatch')} under {schedule}; beside them "
        f"{number_of(len(step.notes), 'note')} of "
        f"{sum(op.num_bytes for op in step.notes):,} bytes"
        + (f", and up to {on_top:,} bytes on a rank to add up gradients of copies" if on_top else ""),
        examples=STEPS * num_ranks,
    )


def _told(step: Step) -> str:
    by_pair = {pair: sum(op.num_bytes for op in operations) for pair, operations in step.messages.items()}
    sums = [f"{op.kind} {op.num_bytes:,}" for operations in step.sums.values() for op in operations]
    return ", ".join(filter(None, (_told_counts(by_pair), *sorted(set(sums))))) or "nothing"


def _told_counts(by_pair: dict[tuple[int, int], int]) -> str:
    return ", ".join(f"{source}>{target} {count:,}" for (source, target), count in sorted(by_pair.items()))


def _judge_wire(judge: Judge, outcomes: Outcomes) -> None:
    """What left each rank is what its operations make on gloo."""
    last = programs.window(STEPS - 1)
    sentence = ""
    for outcome in outcomes:
        operations = in_window(outcome.operations, outcome.marks, last)
        told = reconcile(operations, outcome.sent_bytes(last), len(outcomes), outcome.rank)
        if told.explained is None:
            return  # no such account on this platform: the trace alone speaks
        if not told.explained:
            judge.violated(
                told.sentence,
                expected=f"{told.expected_bytes:,}",
                observed=f"{told.sent_bytes:,}",
                witness=Witness.WIRE,
                unit="bytes",
                outcomes=outcomes,
            )
        sentence = sentence or told.sentence
    judge.holds(
        expected="what the operations of the trace make",
        observed=sentence,
        witness=Witness.WIRE,
        message="the operating system saw no bytes that the trace does not have",
        examples=len(outcomes),
    )


@claim("strategies.pipeline.traffic", provides=PIPELINE)
@pytest.mark.parametrize("schedule", [pytest.param("1f1b", marks=AS_1F1B), "gpipe"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_activations_go_forward_and_their_gradients_back_between_neighbours(
    subject: Subject, judge: Judge, world_size: int, schedule: str
) -> None:
    outcomes = _observe(subject, schedule, world_size)
    _judge_traffic(judge, outcomes, schedule)
    _judge_wire(judge, outcomes)


@claim("strategies.pipeline.traffic", tier="contract", provides=PIPELINE)
@pytest.mark.parametrize(
    ("schedule", "world_size"),
    [("zb_h1", 3), ("zb_h2", 3), ("interleaved_1f1b", 2), ("interleaved_1f1b", 3), ("zbv", 2), ("dualpipev", 3)],
)
def test_other_schedules_send_the_same_over_each_boundary_between_ranks(
    subject: Subject, judge: Judge, schedule: str, world_size: int
) -> None:
    outcomes = _observe(subject, schedule, world_size)
    _judge_traffic(judge, outcomes, schedule)
    _judge_wire(judge, outcomes)


@claim("strategies.pipeline.traffic", tier="contract", provides=PIPELINE)
def test_two_copies_of_the_model_add_up_their_gradients_on_top(subject: Subject, judge: Judge) -> None:
    _judge_traffic(judge, _observe(subject, "dualpipe", 4), "dualpipe")


@claim("strategies.pipeline.traffic", tier="contract", provides=PIPELINE)
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_weight_of_both_ends_is_added_up_on_top(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_traffic(judge, _observe(subject, "gpipe", world_size, tied=True), "gpipe")
