"""Zero Bubble's halves as they are executed: the input gradient alone, and later the weight gradients, once each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.pipeline import halves, offered
from conformance.pipeline.equivalence import schedules
from conformance.pipeline.observed import Event
from conformance.verdict import Witness

CORE = claim("pipeline.zb.split", provides=["train_step"])
CONTRACT = claim("pipeline.zb.split", tier="contract", provides=["train_step"])
COUNT = 6
Seen = Sequence[tuple[Event, set[int]]]  # an event, and whose weight gradients are in .grad by then


def judge_halves(subject: Subject, judge: Judge, schedule: str, world_size: int) -> None:
    """No stage has a microbatch's weight gradients while it waits for its W, each has all of them in the end."""
    reports: list[dict[str, Any]] = offered.run(subject, halves.watch, world_size, schedule, COUNT).values
    put_off = []
    for report in reports:
        for stage, found in report["seen"].items():
            seen = [(Event(*event), _included(judge, stage, bias)) for event, bias, _ in found]
            _judge_end(judge, stage, found[-1][1:])
            if int(stage) > 0:
                put_off += [f"W{stage}.{m}" for m in _put_off(judge, int(stage), seen)]
    if not put_off:
        judge.violated(
            "every weight gradient is computed together with its input gradient: nothing is split",
            expected="some W with other work between it and its I",
            observed="none on any rank",
            witness=Witness.TRACE,
        )
    judge.holds(
        expected="no weight gradient before W, all after it",
        observed=f"so for {len(put_off)} weight gradients that were put off: {', '.join(put_off)}",
        witness=Witness.TRACE,
        message=f"what .grad has whenever something is computed under {schedule}",
        examples=len(put_off),
    )


def _included(judge: Judge, stage: int, value: float) -> set[int]:
    found = halves.microbatches_in(value, COUNT)
    if found is None:
        judge.violated(
            f"the bias of stage {stage} has a gradient that is no sum of microbatches, each once",
            expected="a number of hexadecimal digits 0 and 1, one for each microbatch",
            observed=hex(int(value)) if value == int(value) else value,
        )
    return found


def _put_off(judge: Judge, stage: int, seen: Seen) -> list[int]:
    """The microbatches with other work between I and W; in the meantime their weight gradients must not be there."""
    found = []
    place = {(event.kind, event.microbatch): index for index, (event, *_) in enumerate(seen)}
    for microbatch in range(COUNT):
        first, last = place.get(("I", microbatch)), place.get(("W", microbatch))
        if first is None or last is None:
            judge.violated(
                f"stage {stage} computes no gradient of its {'input' if first is None else 'weight'} for microbatch "
                f"{microbatch}",
                witness=Witness.TRACE,
            )
        if last == first - 1:  # one backward for both: the order inside it is autograd's
            continue
        between = seen[first + 1 : last]
        early = last < first or any(microbatch in included for _, included in between)
        if early:
            judge.violated(
                f"stage {stage} has the weight gradients of microbatch {microbatch} before its W",
                expected=f"I{microbatch}, other work, W{microbatch}, and only then a weight gradient",
                observed=" ".join(f"{event.kind}{event.microbatch}" for event, _ in seen[:-1]),
                witness=Witness.TRACE,
            )
        if between:
            found.append(microbatch)
            _judge_after(judge, stage, microbatch, seen[last + 1 :])
    return found


def _judge_after(judge: Judge, stage: int, microbatch: int, later: Seen) -> None:
    """By the next microbatch's event, or the end, what W made is in ``.grad``."""
    event, included = next(each for each in later if each[0].microbatch != microbatch)
    if microbatch not in included:
        judge.violated(
            f"stage {stage} has no weight gradients of microbatch {microbatch} after its W",
            expected="in .grad when the next action begins",
            observed=f"not there at {event.kind}{event.microbatch}",
            witness=Witness.TRACE,
        )


def _judge_end(judge: Judge, stage: str, gradients: Sequence[float]) -> None:
    """All microbatches once, in weight and bias alike; whether it is their sum or their mean is not judged here."""
    wanted = halves.in_the_end(COUNT)
    scale = COUNT if list(gradients) == [COUNT * each for each in wanted] else 1
    expected = [scale * each for each in wanted]
    judge.expect(list(gradients), expected, message=f"gradients of bias and weight of stage {stage} in the end")


@pytest.mark.parametrize("schedule", schedules("zb_h1", check_of=CORE))
@pytest.mark.parametrize("world_size", [2, 3])
def test_input_gradients_come_alone_and_weight_gradients_later(
    subject: Subject, judge: Judge, schedule: str, world_size: int
) -> None:
    judge_halves(subject, judge, schedule, world_size)


@pytest.mark.parametrize("schedule", schedules("zb_h2", "zbv", check_of=CONTRACT))
def test_the_other_zero_bubble_schedules_split_too(subject: Subject, judge: Judge, schedule: str) -> None:
    judge_halves(subject, judge, schedule, 3)
