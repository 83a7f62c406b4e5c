"""Schedules drawn as text: over time, and in order."""

from __future__ import annotations

from fractions import Fraction

import pytest

from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.gantt import chart, label, lists
from impls.reference.pipeline.names import SCHEDULES, named
from impls.reference.pipeline.simulate import simulate


def _lines(name: str, num_ranks: int, num_microbatches: int, costs: Costs, width: int = 200) -> list[str]:
    return chart(simulate(SCHEDULES[name](num_ranks, num_microbatches), costs), width).splitlines()


def test_1f1b_over_time() -> None:
    assert _lines("1f1b", 3, 4, Costs()) == [
        "1f1b: 3 ranks, 4 microbatches, makespan 18; idle 6 per rank, 33.3% of the total time",
        "rank 0  F0 F1 F2 ............B0    F3 B1    ...B2    ...B3",
        "rank 1  ...F0 F1 ......B0    F2 B1    F3 B2    ...B3    ......",
        "rank 2  ......F0 B0    F1 B1    F2 B2    F3 B3    ............",
        "F forward, B backward, I and W its halves (input, weights), the number is the microbatch; .. idle",
    ]


def test_pairs_and_the_second_stage_of_a_rank() -> None:
    lines = _lines("dualpipev", 2, 4, Costs(), width=400)
    assert lines[1:3] == [
        "rank 0  F0   F1   F2   f0   i0   w0   f1   F3b1           .....f2B0           b2        .....f3B1           "
        "b3        I2   W2   I3   W3",
        "rank 1  .....F0   f0   F1   f1   F2   b0        f2B0           F3b1           f3B1           b2        "
        "B2        .....i3   I3   w3   W3",
    ]
    assert lines[3].endswith("; .. idle; small letters: the second stage of the rank; F5b1: both overlap")


def test_every_column_is_the_same_time_on_all_ranks() -> None:
    timeline = simulate(named("interleaved_1f1b", 3, 6, 3), Costs(forward=2, latency=1))
    columns = Fraction(len("F0.0 "), 2)  # for each unit of time: the shortest actions take 2
    for rank, row in enumerate(chart(timeline, width=1000).splitlines()[1:4]):
        for action, begin, _ in timeline.spans(rank):
            assert f"{row} "[len("rank 0  ") + int(begin * columns) :].startswith(f"{action} ")


@pytest.mark.parametrize("width", [20, 60, 100])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_chart_fits_the_width_that_there_is(name: str, width: int) -> None:
    rows = _lines(name, 4, 16, Costs(latency=1), width)[1:-1]
    assert len(rows) == 4
    assert max(map(len, rows)) <= width


def test_work_that_takes_no_time_leaves_no_trace() -> None:
    assert _lines("gpipe", 1, 1, Costs(forward=0))[1] == "rank 0  B0"
    assert _lines("gpipe", 1, 1, Costs(forward=0, backward=0))[1] == "rank 0  ..."


def test_of_many_ranks_the_first_are_shown() -> None:
    lines = _lines("1f1b", 20, 20, Costs())
    assert [line.split()[1] for line in lines[1:17]] == [str(rank) for rank in range(16)]
    assert lines[17] == "(4 more of 20 ranks)"


def test_idle_time_that_differs_between_ranks() -> None:
    costs = Costs(forward=[1, 2], backward=4)
    assert "makespan 11; idle 5 to 6 per rank, 50.0% of the total time" in _lines("gpipe", 2, 1, costs)[0]


@pytest.mark.parametrize(
    ("text", "stages", "short"),
    [
        ("F3.5", [3], "F5"),
        ("B4.5", [3, 4], "b5"),
        ("F3.5&B4.1", [3, 4], "F5b1"),
        ("F9.5", [3, 4], "F9.5"),
        ("F4.5", [0, 4, 8], "F4.5"),
    ],
)
def test_labels(text: str, stages: list[int], short: str) -> None:
    assert label(Action.parse(text), stages) == short


def test_lists_mark_places_and_what_is_missing() -> None:
    assert lists(SCHEDULES["gpipe"](2, 2), [(0, 1), (1, 4)]).splitlines() == [
        "rank 0  F0.0 >F0.1< B0.0 B0.1",
        "rank 1  F1.0 F1.1   B1.0 B1.1 ><",
    ]


def test_of_long_lists_what_is_from_a_little_before_the_mark() -> None:
    lines = lists(SCHEDULES["gpipe"](20, 50), [(18, 60)]).splitlines()
    assert lines[0].startswith("rank 4   ... B4.5 ")
    assert ">B18.10<" in lines[14]
    assert lines[14].endswith(" ...")
    assert lines[16] == "(4 more of 20 ranks)"
