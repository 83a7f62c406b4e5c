"""The bubble functions against the idle share of simulated schedules, whatever they calculate it with."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import strategies as st

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.bubble_formulas import BUBBLES, likely
from conformance.pipeline.idle import timeline
from conformance.pipeline.judged import Asked, judge_refused, legal_bubbles
from conformance.verdict import Tier, Witness
from impls.reference.pipeline.names import SCHEDULES

SIMULATED = {
    "bubble_fraction": "gpipe",
    "bubble_1f1b": "1f1b",
    "bubble_zero_bubble": "zb_h1",
    "bubble_dualpipe": "dualpipe",
    "bubble_dualpipev": "dualpipev",
}


def _each(*, tier: Tier = Tier.CORE, alone: bool = False) -> list[object]:
    how: dict[str, Any] = {"tier": tier, "alone": alone}
    marks = {
        "bubble_fraction": claim("pipeline.gpipe.bubble", provides=["bubble_fraction"], **how),
        "bubble_1f1b": claim("pipeline.simulators.1f1b", provides=["bubble_1f1b"], **how),
        "bubble_zero_bubble": claim("pipeline.simulators.zb", provides=["bubble_zero_bubble"], **how),
        "bubble_dualpipe": claim("pipeline.simulators.dualpipe", provides=["bubble_dualpipe"], **how),
        "bubble_dualpipev": claim("pipeline.simulators.dualpipev", provides=["bubble_dualpipev"], **how),
    }
    return [pytest.param(name, marks=mark) for name, mark in marks.items()]


def _expected(name: str, num_ranks: int, num_microbatches: int) -> Fraction:
    return Fraction(timeline(SCHEDULES[SIMULATED[name]](num_ranks, num_microbatches)).bubble_share())


def _judge(subject: Subject, judge: Judge, name: str, sizes: list[tuple[int, int]], told: str) -> None:
    asked = [Asked(name, *size) for size in sizes]
    found = legal_bubbles(subject, judge, asked)
    for one, number in zip(asked, found, strict=True):
        expected = _expected(name, one.num_ranks, one.num_microbatches)
        if not number.is_near(expected):
            guess = likely(BUBBLES[name], asked, found) if len(found) > 1 else ""
            judge.violated(
                f"{one} returns {float(number.value):.6g}; ranks of the simulated schedule idle for {expected} = "
                f"{float(expected):.6g} of the total time.{f' That is {guess}' if guess else ''}",
                expected=f"{BUBBLES[name].text} = {float(expected):.6g}",
                observed=f"{float(number.value):.6g}",
                witness=Witness.SIMULATION,
            )
    judge.holds(
        expected=BUBBLES[name].text,
        observed=f"{float(found[-1].value):.6g} for {asked[-1]}",
        witness=Witness.SIMULATION,
        message=told,
        examples=len(asked),
    )


@pytest.mark.parametrize("name", _each())
def test_share_is_that_of_the_simulated_schedule(subject: Subject, judge: Judge, name: str) -> None:
    sizes = list(BUBBLES[name].sizes)
    _judge(subject, judge, name, sizes, f"the idle share of total time for (P, M) in {sizes}")


@pytest.mark.parametrize("name", _each())
def test_share_is_so_for_drawn_sizes(subject: Subject, judge: Judge, name: str) -> None:
    step, fewest = {"bubble_dualpipe": (2, 2), "bubble_dualpipev": (1, 2)}.get(name, (1, 1))
    sizes = st.tuples(st.integers(1, 5), st.integers(0, 20)).map(
        lambda drawn: (step * drawn[0], fewest * step * drawn[0] + step * drawn[1])
    )
    judge.forall(
        sizes,
        lambda size: _judge(subject, judge, name, [size], "the idle share of total time for drawn P and M"),
        max_examples=10,
    )


@pytest.mark.parametrize("name", _each(tier=Tier.CONTRACT, alone=True))
def test_illegal_sizes_are_refused(subject: Subject, judge: Judge, name: str) -> None:
    bubble = BUBBLES[name]
    judge_refused(subject, judge, [Asked(name, *size) for size in bubble.refused], rule=bubble.rule, numbers=True)
