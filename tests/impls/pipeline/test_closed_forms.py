"""The simulated schedules against formulas in print: idle time per rank, memory, copies, overlap and latency.

N ranks, M microbatches; F, I and W are what 1/N of the model costs, B = I + W, FB an overlapped pair.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest

from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.counts import copies, paired_share, peak_activations
from impls.reference.pipeline.names import SCHEDULES, named
from impls.reference.pipeline.simulate import Timeline, simulate

RANKS = (1, 2, 3, 4, 6)
# F, I and W equal; no W at all; each of them the largest; W beyond what the bubble can take; fractions.
COSTS = [
    *[(1, 1, 1), (1, 2, 0), (2, 2, 1), (3, 1, 1), (1, 3, 1), (2, 3, 5), (5, 2, 2)],
    (Fraction(1, 3), Fraction(2, 7), 1),
]


def _run(schedule: Schedule, f: Any, i: Any, w: Any, fb: Any = None, latency: Any = 0) -> Timeline:
    costs = Costs(forward=f, input=i, weight=w, pair=fb, latency=latency)
    return simulate(schedule, costs.of_rank(schedule))


@pytest.mark.parametrize(("f", "i", "w"), COSTS)
@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_gpipe_and_1f1b_idle_for_the_same_time_whatever_m_is(name: str, f: int, i: int, w: int) -> None:
    for n, m in itertools.product(RANKS, (1, 2, 3, 8)):
        assert _run(SCHEDULES[name](n, m), f, i, w).bubble() == [(n - 1) * (f + i + w)] * n


@pytest.mark.parametrize(("f", "i", "w"), COSTS)
def test_interleaved_1f1b_idles_for_one_vth_of_it(f: int, i: int, w: int) -> None:
    for n, groups, v in itertools.product(RANKS, (1, 3), (1, 2, 3)):
        timeline = _run(named("interleaved_1f1b", n, groups * n, v), f, i, w)
        assert timeline.bubble() == [Fraction((n - 1) * (f + i + w), v)] * n


@pytest.mark.parametrize(("f", "i", "w"), COSTS)
def test_zb_h1(f: int, i: int, w: int) -> None:
    for n, more in itertools.product(RANKS, (0, 1, 7)):
        bubble = _run(SCHEDULES["zb_h1"](n, n + more), f, i, w).bubble()
        assert bubble == [(n - 1) * max(f, i, f + i - w)] * n
        if w <= min(f, i):
            assert bubble == [(n - 1) * (f + (i + w) - 2 * w)] * n


@pytest.mark.parametrize(("f", "i", "w"), COSTS)
def test_zb_h2_with_and_without_a_barrier(f: int, i: int, w: int) -> None:
    for n, more in itertools.product(RANKS, (0, 1, 7)):
        timeline = _run(SCHEDULES["zb_h2"](n, 2 * n - 1 + more), f, i, w)
        assert timeline.bubble() == [(n - 1) * max(f, f + i - 2 * w, i - f)] * n
        assert max(timeline.bubble(barrier=False)) == (n - 1) * max(0, f + i - 2 * w, i - f)


def test_zbv_idles_only_at_the_barrier_when_all_costs_are_equal() -> None:
    for n, more in itertools.product(RANKS, (0, 1, 7)):
        timeline = _run(SCHEDULES["zbv"](n, 2 * n - 1 + more), 1, 1, 1)
        assert timeline.bubble() == [Fraction(n - 1, 2)] * n
        assert timeline.bubble(barrier=False) == [0] * n


# I = F and W <= I. Where a pair costs less than its parts, ranks with fewer pairs work longer and idle less.
@pytest.mark.parametrize(("f", "w"), [(1, 1), (2, 1), (3, 2), (1, 0)])
@pytest.mark.parametrize("overlap", [0, Fraction(1, 3), 1])
def test_dualpipe_and_dualpipev(f: int, w: int, overlap: Fraction) -> None:
    fb = f + (f + w) - overlap * f  # from F + B down to max(F, B)
    for n, more in itertools.product((1, 2, 3, 4, 6), (0, 2, 7)):
        v = _run(SCHEDULES["dualpipev"](n, 2 * n + more), f, f, w, fb).bubble()
        assert max(v) == Fraction((n - 1) * (fb + f + w - 3 * w), 2)
        assert overlap or len(set(v)) == 1
    for n, more in itertools.product((2, 4, 6), (0, 2, 8)):
        both = _run(SCHEDULES["dualpipe"](n, 2 * n + more), f, f, w, fb).bubble()
        assert max(both) == (n // 2 - 1) * (fb + f + w - 3 * w)
        assert overlap or len(set(both)) == 1


@pytest.mark.parametrize(
    ("name", "over"), [("gpipe", 1), ("1f1b", 1), ("zb_h1", 3), ("zb_h2", 3), ("zbv", 6), ("dualpipev", 3)]
)
def test_shares_of_total_and_of_ideal_time_when_all_costs_are_equal(name: str, over: int) -> None:
    for n, m in itertools.product((1, 2, 4), (8, 32)):
        timeline = _run(SCHEDULES[name](n, m), 1, 1, 1)
        assert timeline.bubble_share() == Fraction(n - 1, over * m + n - 1)
        assert timeline.bubble_share("ideal") == Fraction(n - 1, over * m)


def test_share_of_dualpipe_when_all_costs_are_equal() -> None:
    for n, m in itertools.product((2, 4, 8), (16, 32)):
        assert _run(SCHEDULES["dualpipe"](n, m), 1, 1, 1).bubble_share() == Fraction(n - 2, 3 * m + n - 2)


def test_exposed_latency_gpipe_loses_it_twice_per_boundary_and_1f1b_with_every_microbatch() -> None:
    c = Fraction(1, 7)
    for n, groups in itertools.product((2, 3, 4, 8), (1, 2, 5)):
        m = groups * n
        lost = [
            _run(SCHEDULES[name](n, m), 1, 1, 1, latency=c).makespan - _run(SCHEDULES[name](n, m), 1, 1, 1).makespan
            for name in ("gpipe", "1f1b")
        ]
        assert lost == [2 * (n - 1) * c, 2 * c * (Fraction((n - 1) * m, n) + n - 2)]


PEAKS = {
    "gpipe": lambda n, m: [m] * n,
    "1f1b": lambda n, m: [min(m, n - rank) for rank in range(n)],
    "interleaved_1f1b": lambda n, m: [n + Fraction(n - 1, 2) - rank for rank in range(n)],
    "zb_h1": lambda n, m: [n] * n,
    "zb_h2": lambda n, m: [2 * n - 1] * n,
    "zbv": lambda n, m: [n] * n,
    "dualpipe": lambda n, m: [n + 1] * n,
    "dualpipev": lambda n, m: [n + Fraction(1, 2)] * n,
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_peak_activations_by_rank(name: str) -> None:
    for n, groups in itertools.product((2, 4, 8), (2, 3, 8)):
        assert peak_activations(SCHEDULES[name](n, groups * n)) == PEAKS[name](n, groups * n)


def test_1f1b_holds_no_more_than_there_are_microbatches() -> None:
    assert peak_activations(SCHEDULES["1f1b"](8, 3)) == [3, 3, 3, 3, 3, 3, 2, 1]


@pytest.mark.parametrize("name", SCHEDULES)
def test_dualpipe_has_two_copies_of_every_stage_and_the_others_one(name: str) -> None:
    schedule = SCHEDULES[name](4, 8)
    assert copies(schedule) == [2 if name == "dualpipe" else 1] * schedule.num_stages


def test_dualpipe_and_dualpipev_overlap_nearly_the_same_share_and_neither_all() -> None:
    both, v = (sorted(paired_share(SCHEDULES[name](8, 64))) for name in ("dualpipe", "dualpipev"))
    assert (both[0], both[-1]) == (Fraction(53, 64), Fraction(55, 64))  # 83 to 86 %
    assert (v[0], v[-1]) == (Fraction(105, 128), Fraction(111, 128))  # 82 to 87 %


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_h2", "zbv"])
def test_the_others_overlap_nothing(name: str) -> None:
    assert paired_share(SCHEDULES[name](4, 8)) == [0] * 4
