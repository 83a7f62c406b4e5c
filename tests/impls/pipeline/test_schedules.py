"""The eight orders: written out where they are short, valid for all small numbers or refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from impls.reference.pipeline.gantt import label
from impls.reference.pipeline.names import SCHEDULES
from impls.reference.pipeline.schedules import interleaved_1f1b
from impls.reference.pipeline.validate import validate

# One stage to a rank: the stage is left out. Two stages: capitals for the first, small letters for the second.
ORDERS = {
    ("gpipe", 2, 3): ["F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"],
    ("1f1b", 3, 4): [
        "F0 F1 F2 B0 F3 B1 B2 B3",
        "F0 F1 B0 F2 B1 F3 B2 B3",
        "F0 B0 F1 B1 F2 B2 F3 B3",
    ],
    ("1f1b", 4, 2): ["F0 F1 B0 B1", "F0 F1 B0 B1", "F0 F1 B0 B1", "F0 B0 F1 B1"],
    ("interleaved_1f1b", 2, 4): [
        "F0 F1 f0 f1 F2 b0 F3 b1 f2 B0 f3 B1 b2 b3 B2 B3",
        "F0 F1 f0 b0 f1 b1 F2 B0 F3 B1 f2 b2 f3 b3 B2 B3",
    ],
    ("zb_h1", 2, 3): ["F0 F1 I0 W0 F2 I1 W1 I2 W2", "F0 I0 F1 I1 W0 F2 I2 W1 W2"],
    ("zb_h2", 2, 3): ["F0 F1 F2 I0 W0 I1 W1 I2 W2", "F0 I0 F1 I1 F2 I2 W0 W1 W2"],
    ("zbv", 2, 3): [
        "F0 F1 F2 f0 i0 w0 f1 i1 w1 I0 W0 f2 i2 w2 I1 W1 I2 W2",
        "F0 f0 F1 f1 i0 w0 F2 I0 W0 f2 i1 w1 I1 i2 I2 W1 w2 W2",
    ],
    ("dualpipe", 2, 4): [
        "F0 f2 F1 b2 f3B0 b3 I1 W1",
        "F2 f0 F3 b0 f1B2 b1 I3 W3",
    ],
    ("dualpipev", 2, 4): [
        "F0 F1 F2 f0 i0 w0 f1 F3b1 f2B0 b2 f3B1 b3 I2 W2 I3 W3",
        "F0 f0 F1 f1 F2 b0 f2B0 F3b1 f3B1 b2 B2 i3 I3 w3 W3",
    ],
}
LEGAL: dict[str, Callable[[int, int], bool]] = {
    "gpipe": lambda n, m: True,
    "1f1b": lambda n, m: True,
    "interleaved_1f1b": lambda n, m: m % n == 0,
    "zb_h1": lambda n, m: True,
    "zb_h2": lambda n, m: m >= 2 * n - 1,
    "zbv": lambda n, m: m >= 2 * n - 1,
    "dualpipe": lambda n, m: n % 2 == 0 and m % 2 == 0 and m >= 2 * n,
    "dualpipev": lambda n, m: m >= 2 * n,
}


@pytest.mark.parametrize(("name", "num_ranks", "num_microbatches"), ORDERS)
def test_the_order_on_every_rank(name: str, num_ranks: int, num_microbatches: int) -> None:
    schedule = SCHEDULES[name](num_ranks, num_microbatches)
    found = [
        " ".join(label(action, schedule.stages_of(rank)) for action in schedule[rank]) for rank in range(num_ranks)
    ]
    assert found == ORDERS[name, num_ranks, num_microbatches]


@pytest.mark.parametrize("name", SCHEDULES)
def test_all_small_numbers_are_valid_or_refused(name: str) -> None:
    for num_ranks, num_microbatches in itertools.product(range(1, 8), range(1, 20)):
        if LEGAL[name](num_ranks, num_microbatches):
            schedule = SCHEDULES[name](num_ranks, num_microbatches)
            assert (schedule.num_ranks, schedule.num_microbatches) == (num_ranks, num_microbatches)
            validate(schedule)
        else:
            with pytest.raises(ValueError, match=f"got N = {num_ranks} ranks? and M = {num_microbatches} microbatch"):
                SCHEDULES[name](num_ranks, num_microbatches)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("num_ranks", "num_microbatches"), [(0, 8), (-2, 8), (4, 0), (4, -8), (4, 8.0), (2.5, 8)])
def test_there_is_at_least_one_rank_and_one_microbatch(name: str, num_ranks: int, num_microbatches: int) -> None:
    with pytest.raises(ValueError, match=r"needs .*; got N = "):
        SCHEDULES[name](num_ranks, num_microbatches)


@pytest.mark.parametrize("num_chunks", [1, 2, 3, 4])
def test_interleaved_with_any_number_of_chunks(num_chunks: int) -> None:
    for num_ranks, groups in itertools.product(range(1, 5), range(1, 4)):
        schedule = interleaved_1f1b(num_ranks, groups * num_ranks, num_chunks)
        assert schedule.stages_of(0) == list(range(0, num_chunks * num_ranks, num_ranks))
        validate(schedule)


def test_interleaved_with_one_chunk_warms_up_twice_as_far_as_1f1b() -> None:
    assert str(interleaved_1f1b(2, 4, 1)[0][3]) == "B0.0"
    assert str(SCHEDULES["1f1b"](2, 4)[0][2]) == "B0.0"


def test_chunks_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="at least 1 chunk per rank, not 0"):
        interleaved_1f1b(2, 4, 0)
