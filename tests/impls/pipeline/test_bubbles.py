"""The bubble as one figure: the cheatsheet's values, other conventions, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from impls.reference.pipeline.bubbles import (
    bubble_1f1b,
    bubble_dualpipe,
    bubble_dualpipev,
    bubble_fraction,
    bubble_zero_bubble,
)

Bubble = Callable[..., float]
ALL = [bubble_fraction, bubble_1f1b, bubble_zero_bubble, bubble_dualpipe, bubble_dualpipev]


# The nearest float to the fraction: float(Fraction) and / both round correctly, so there is nothing to tolerate.
@pytest.mark.parametrize(
    ("bubble", "formula"),
    [
        (bubble_fraction, lambda p, m: (p - 1) / (m + p - 1)),
        (bubble_1f1b, lambda p, m: (p - 1) / (m + p - 1)),
        (bubble_zero_bubble, lambda p, m: (p - 1) / (3 * m + p - 1)),
        (bubble_dualpipe, lambda p, m: (p - 2) / (3 * m + p - 2)),
        (bubble_dualpipev, lambda p, m: (p - 1) / (3 * m + p - 1)),
    ],
)
def test_shares_of_total_time(bubble: Bubble, formula: Callable[[int, int], float]) -> None:
    for p, m in [(2, 4), (2, 16), (4, 8), (4, 64), (8, 16), (8, 30)]:
        assert bubble(p, m) == formula(p, m)


def test_the_cheatsheet() -> None:
    assert f"{bubble_fraction(4, 8):.0%}" == "27%"
    assert f"{bubble_fraction(4, 64):.1%}" == "4.5%"


@pytest.mark.parametrize("bubble", ALL)
def test_4_ranks_and_8_microbatches_if_nothing_else_is_said(bubble: Bubble) -> None:
    assert bubble() == bubble(num_stages=4, num_microbatches=8) == bubble(4, 8)


@pytest.mark.parametrize("bubble", [bubble_fraction, bubble_1f1b, bubble_zero_bubble, bubble_dualpipev])
def test_one_rank_never_waits(bubble: Bubble) -> None:
    assert bubble(1, 8) == 0


def test_share_of_ideal_time() -> None:
    assert bubble_1f1b(4, 8, of="ideal") == 3 / 8
    assert bubble_dualpipe(4, 8, of="ideal") == 2 / 24


def test_costs_are_those_of_one_nth_of_the_model() -> None:
    assert bubble_1f1b(4, 8, forward=1, input=2, weight=0) == bubble_1f1b(4, 8)
    assert bubble_zero_bubble(4, 8, weight=Fraction(1, 2)) == 3 * 1.5 / (8 * 2.5 + 3 * 1.5)
    # A stage of DualPipeV costs half. The ranks idle for 0.5, 1, 1.5 and 1.5 of 22: (N-1)(FB+B-3W)/2 at the most.
    assert bubble_dualpipev(4, 8, pair=2) == 4.5 / (4 * 22)


def test_latency_that_is_exposed_makes_the_bubble_of_1f1b_grow_beyond_gpipes() -> None:
    assert bubble_fraction(4, 8, latency=1) == (9 + 6) / (24 + 9 + 6)
    assert bubble_1f1b(4, 8, latency=1) == (9 + 16) / (24 + 9 + 16)


def test_without_a_barrier() -> None:
    # Between its forwards and its backwards rank 0 waits for a forward and a backward of rank 1, which never waits.
    assert bubble_fraction(2, 4, barrier=False) == 3 / (3 + 2 * 4 * 3)


@pytest.mark.parametrize("bubble", ALL)
@pytest.mark.parametrize(("p", "m"), [(0, 8), (-4, 8), (4, 0), (4, -8), (4, 8.5)])
def test_what_is_no_number_of_ranks_or_microbatches_is_refused(bubble: Bubble, p: int, m: int) -> None:
    with pytest.raises(ValueError, match=r"needs .*; got N = "):
        bubble(p, m)


@pytest.mark.parametrize(
    ("bubble", "p", "m"),
    [
        (bubble_zero_bubble, 4, 3),
        (bubble_dualpipe, 3, 8),
        (bubble_dualpipe, 4, 9),
        (bubble_dualpipe, 4, 6),
        (bubble_dualpipev, 4, 7),
    ],
)
def test_what_a_schedule_does_not_allow_is_refused(bubble: Bubble, p: int, m: int) -> None:
    with pytest.raises(ValueError, match=rf"got N = {p} ranks and M = {m} microbatches"):
        bubble(p, m)


def test_a_convention_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="latencies"):
        bubble_1f1b(4, 8, latencies=1)  # type: ignore[call-arg]
