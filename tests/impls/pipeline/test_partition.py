"""The partitioner against all ways to cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impls.reference.pipeline.partition import partition


def _all_ways(num_layers: int, num_stages: int) -> Iterator[list[slice]]:
    for inner in itertools.combinations(range(1, num_layers), num_stages - 1):
        yield [slice(begin, end) for begin, end in itertools.pairwise((0, *inner, num_layers))]


def _figure(costs: Sequence[Any], stages: Sequence[slice]) -> tuple[Fraction, Fraction]:
    """The costliest stage, and the sum of squares."""
    totals = [sum(map(Fraction, costs[stage]), Fraction(0)) for stage in stages]
    return max(totals), sum((total**2 for total in totals), Fraction(0))


NUMBERS = st.one_of(
    st.integers(0, 9),
    st.fractions(0, 3, max_denominator=7),
    st.floats(0, 10, allow_subnormal=False),
    st.sampled_from([0, 1e-300, 1e300, 0.1, 0.2, 0.3]),
)


@given(costs=st.lists(NUMBERS, min_size=1, max_size=9), data=st.data())
def test_no_way_to_cut_is_better(costs: list[Any], data: st.DataObject) -> None:
    num_stages = data.draw(st.integers(1, len(costs)))
    found = partition(costs, num_stages)
    assert found in list(_all_ways(len(costs), num_stages))
    assert _figure(costs, found) == min(_figure(costs, way) for way in _all_ways(len(costs), num_stages))


def test_the_other_stages_are_even_where_one_layer_decides() -> None:
    assert partition([10, 1, 1, 1, 1, 1, 1], 3) == [slice(0, 1), slice(1, 4), slice(4, 7)]


def test_as_many_stages_as_layers() -> None:
    assert partition([0, 5, 0], 3) == [slice(0, 1), slice(1, 2), slice(2, 3)]


def test_a_thousand_layers() -> None:
    costs = [layer * 7919 % 101 for layer in range(1000)]
    found = partition(costs, 64)
    assert found[0].start == 0
    assert found[-1].stop == 1000
    assert all(before.stop == after.start for before, after in itertools.pairwise(found))
    costliest = max(sum(costs[stage]) for stage in found)
    filled = [0]
    for cost in costs:  # a limit lower by one needs more stages
        if filled[-1] + cost > costliest - 1:
            filled.append(0)
        filled[-1] += cost
    assert len(filled) > 64


@pytest.mark.parametrize(
    ("costs", "num_stages", "reason"),
    [
        ([1, 2], 3, "2 layers cannot be cut into 3 stages"),
        ([1, 2], 0, "2 layers cannot be cut into 0 stages"),
        ([], 1, "0 layers cannot be cut"),
        ([1, -2], 1, "layer 1 costs -2"),
        ([float("nan")], 1, "layer 0 costs nan"),
        ([float("inf")], 1, "layer 0 costs inf"),
    ],
)
def test_refuses_with_a_reason(costs: list[float], num_stages: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        partition(costs, num_stages)
