"""Data parallelism moves gradients by all-reduce (strategies.ddp.traffic), during backward (strategies.ddp.link)."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.checks import Judge, Subject, claim, optional
from conformance.strategies import programs
from conformance.strategies.ddp_traffic import (
    Step,
    blocked,
    fault_in,
    inside_no_sync,
    is_note,
    steps_of,
    weight_gradients,
)
from conformance.verdict import Witness
from fixtures.witness.clock import backward_overlap
from fixtures.witness.compare import agreement, in_window, reconcile
from fixtures.world.outcome import Outcome, Outcomes
from impls.words import number_of

STEPS = 3  # torch lays its buckets out anew in the second
WRAPPED = ["DataParallel|average_gradients"]
WIRE_OVERHEAD = 1.1  # gloo's preambles are under a tenth from 64 KiB on


def _observe(subject: Subject, world_size: int, **how: Any) -> Outcomes:
    return subject.run(programs.step, world_size, num_layers=4, width=128, steps=STEPS, **how)


def _judge_traffic(judge: Judge, outcomes: Outcomes, world_size: int) -> None:
    for outcome in outcomes:
        wanted = outcome.value["gradient_bytes"]
        for index, step in enumerate(steps_of(outcome)):
            if fault := fault_in(step, wanted, world_size, outcome.value["num_parameters"]):
                judge.violated(
                    f"rank {outcome.rank}, step {index}: {fault}",
                    expected=f"all-reduces of {wanted:,} bytes in all",
                    observed=_told(step),
                    witness=Witness.TRACE,
                    unit="bytes",
                    outcomes=outcomes,
                )
    step = steps_of(outcomes[0])[-1]
    judge.holds(
        expected=f"{outcomes[0].value['gradient_bytes']:,}",
        observed=f"{step.bytes_of(*step.kinds):,} in {number_of(len(step.gradients), 'operation')}: {_told(step)}",
        witness=Witness.TRACE,
        unit="bytes",
        message=f"gradient traffic of a step; beside it {_extras(outcomes)}",
        examples=STEPS * world_size,
    )


def _told(step: Step) -> str:
    return ", ".join(f"{kind} of {step.bytes_of(kind):,} bytes" for kind in sorted(step.kinds)) or "nothing"


def _extras(outcomes: Outcomes) -> str:
    steps = [step for outcome in outcomes for step in steps_of(outcome)]
    notes = sum(op.num_bytes for step in steps for op in step.notes)
    before = sum(op.num_bytes for step in steps for op in step.before)
    return f"{notes:,} bytes of notes and {before:,} bytes in forward passes, over all ranks and steps"


def _judge_wire(judge: Judge, outcomes: Outcomes, world_size: int) -> None:
    """What left each rank is what its operations make of 2T(N-1)/N, to the byte where gloo is known."""
    last = programs.window(STEPS - 1)
    formula = 2 * outcomes[0].value["gradient_bytes"] * (world_size - 1) // world_size
    for outcome in outcomes:
        sent = outcome.sent_bytes(last)
        if sent is None:
            return  # no such account on this platform: the trace alone speaks
        told = reconcile(in_window(outcome.operations, outcome.marks, last), sent, world_size, outcome.rank)
        if not told.explained or sent > WIRE_OVERHEAD * formula + 4096:
            judge.violated(
                told.sentence, expected=f"{formula:,}", observed=f"{sent:,}", witness=Witness.WIRE, unit="bytes"
            )
    judge.holds(
        expected=f"{formula:,} by 2T(N-1)/N",
        observed=f"{outcomes[0].sent_bytes(last):,}",
        witness=Witness.WIRE,
        unit="bytes",
        message="what the operating system saw rank 0 send in the last step, preambles included",
        examples=world_size,
    )


@claim("strategies.ddp.traffic", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_gradients_travel_by_all_reduce_and_no_more_of_them_than_there_are(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    outcomes = _observe(subject, world_size)
    _judge_traffic(judge, outcomes, world_size)
    _judge_wire(judge, outcomes, world_size)
    findings = agreement([outcome.operations for outcome in outcomes])
    if findings:
        judge.violated(findings[0].sentence, expected="one operation on all ranks", witness=Witness.TRACE)


@claim("strategies.ddp.traffic", tier="contract", provides=["DataParallel"])
@optional("DataParallel.no_sync")
@pytest.mark.parametrize("world_size", [2, 3])
def test_nothing_travels_inside_no_sync_and_one_reduction_follows(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    _judge_no_sync(judge, _observe(subject, world_size, micro=3), world_size)


@claim("strategies.ddp.traffic", tier="exotic", provides=["DataParallel"])
@optional("DataParallel.no_sync")
def test_a_no_sync_inside_of_another_does_not_end_it(subject: Subject, judge: Judge) -> None:
    _judge_no_sync(judge, _observe(subject, 2, micro=2, nested=True), 2)


def _judge_no_sync(judge: Judge, outcomes: Outcomes, world_size: int) -> None:
    for outcome in outcomes:
        early = [op for op in inside_no_sync(outcome) if not is_note(op, outcome)]
        if early:
            judge.violated(
                f"rank {outcome.rank} issued {number_of(len(early), 'operation')} inside no_sync(), the first at "
                f"{early[0].where}",
                expected="no operation inside no_sync()",
                observed=f"{early[0].kind} of {early[0].num_bytes:,} bytes",
                witness=Witness.TRACE,
            )
    _judge_traffic(judge, outcomes, world_size)


@claim("strategies.ddp.traffic", tier="contract", provides=["DataParallel"])
def test_what_travels_in_a_forward_pass_are_buffers(subject: Subject, judge: Judge) -> None:
    outcomes = _observe(subject, 2, model="buffers")
    _judge_traffic(judge, outcomes, 2)
    for outcome in outcomes:
        buffers = outcome.value["buffer_bytes"]
        for step in steps_of(outcome):
            large = [op for op in step.before if not is_note(op, outcome)]
            judge.at_most(
                sum(op.num_bytes for op in large),
                buffers,
                witness=Witness.TRACE,
                unit="bytes",
                message="bytes that a forward pass moves, against those of the buffers",
            )


@claim("strategies.ddp.traffic", tier="exotic", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [5, 8])
def test_unusual_numbers_of_ranks_reduce_no_more_than_the_gradients(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    _judge_traffic(judge, _observe(subject, world_size), world_size)


# -- overlap -----------------------------------------------------------------------------------------------------------


@claim("strategies.ddp.link", provides=["DataParallel"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_the_first_bucket_sets_out_before_backward_ends(subject: Subject, judge: Judge, world_size: int) -> None:
    outcomes = subject.run(programs.overlapping, world_size, steps=STEPS)
    judge.timeline(outcomes)  # the overlap is there to be seen
    launched = []
    for outcome in outcomes:
        step = steps_of(outcome)[-1]
        launched.append(_launched_in_backward(judge, outcome, step))
    overlap = backward_overlap(steps_of(outcomes[0])[-1].gradients, steps_of(outcomes[0])[-1].marks)
    judge.holds(
        expected="at least one all-reduce before the last gradient is there",
        observed=f"{launched[0]} of {overlap.num_operations}",
        witness=Witness.TRACE,
        message=f"{overlap.fraction:.0%} of the communication of rank 0 was hidden behind backward (clock)",
        examples=world_size,
    )


def _launched_in_backward(judge: Judge, outcome: Outcome, step: Step) -> int:
    """How many operations were issued before the last gradient was there; by order, not by time."""
    events = weight_gradients(step.marks)
    if not step.gradients:
        judge.violated(
            f"rank {outcome.rank} issued no operation that moves gradients",
            expected="at least one all-reduce",
            observed="none",
            witness=Witness.TRACE,
        )
    if len(events) < 2:
        judge.inconclusive("the wrapper trains other parameters than it was given: hooks on those saw no gradient")
    first, last = step.gradients[0], events[-1]
    early = [op for op in step.gradients if op.issued_ns < last.at_ns]
    if not early:
        returned = next(mark for mark in step.marks if mark.name == "backward-end")
        if first.issued_ns > returned.at_ns:
            judge.not_provided(
                "gradients are reduced after backward() has returned, in a call of its own: correct, with no overlap"
            )
        judge.violated(
            f"rank {outcome.rank} issued its first {first.kind} ({first.where}) after the last gradient of backward",
            expected="the first all-reduce before the last gradient",
            observed=f"all {number_of(len(step.gradients), 'operation')} after it",
            witness=Witness.TRACE,
        )
    if all(blocked(op, step.marks) for op in early):
        judge.violated(
            f"rank {outcome.rank} waits for each {first.kind} ({first.where}) in backward: nothing overlaps",
            expected="computation between the issue of an all-reduce and the wait for it",
            observed=f"{number_of(len(early), 'operation')} that block at once",
            witness=Witness.TRACE,
        )
    return len(early)
