"""Comparisons say where the first difference is, and what is equal stays equal."""

from __future__ import annotations

import math

import pytest
import torch

from conformance import expect
from conformance.judge import Judge
from conformance.verdict import Witness


def test_first_differing_index_and_both_values_are_named():
    found = expect.same_bits(torch.tensor([[1, 2], [3, 5]]), torch.tensor([[1, 2], [3, 4]]), "the sum")
    assert not found.matches
    assert (found.expected, found.observed) == ("4 at (1, 1)", "5 at (1, 1)")
    assert found.message == "the sum: 1 of 4 elements differ, the first at index (1, 1)"


@pytest.mark.parametrize(
    ("left", "right", "matches"),
    [
        (torch.tensor([0.0]), torch.tensor([-0.0]), False),
        (torch.tensor([math.nan]), torch.tensor([math.nan]), True),
        (torch.tensor(3), torch.tensor(3), True),
        (torch.tensor(3), torch.tensor(4), False),
        (torch.zeros(0), torch.zeros(0), True),
        (torch.zeros(0, 3), torch.zeros(3, 0), False),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), False),
        (torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16), True),
        (torch.tensor([True]), torch.tensor([False]), False),
        (torch.tensor([1 + 2j]), torch.tensor([1 - 2j]), False),
        (torch.arange(6).reshape(2, 3).t(), torch.tensor([[0, 3], [1, 4], [2, 5]]), True),
    ],
    ids=["signed zero", "nan", "0-d equal", "0-d", "empty", "empty shapes", "dtype", "bf16", "bool", "complex", "view"],
)
def test_bits_decide(left, right, matches):
    assert expect.same_bits(left, right).matches is matches


@pytest.mark.parametrize(
    ("observed", "bound", "matches"), [(1.001, 0.01, True), (1.1, 0.01, False), (math.nan, 0.01, False)]
)
def test_bound_is_shown_beside_the_error(observed, bound, matches):
    found = expect.within(torch.tensor([observed]), torch.tensor([1.0]), bound)
    assert found.matches is matches
    assert "0.01" in found.expected


@pytest.mark.parametrize(
    ("values", "where", "error"),
    [([1.5, 9.0, 1.5], "1", "8"), ([1.5, math.nan, 9.0], "1", "inf"), ([1.0, 1.0, -7.0], "2", "8")],
)
def test_the_element_that_is_shown_is_the_one_with_the_largest_error(values, where, error):
    found = expect.within(torch.tensor(values), torch.ones(3), 0.25)
    assert found.expected == f"1.0 at {where}, within 0.25"
    assert found.observed == f"{values[int(where)]} at {where}, off by {error}"
    assert found.message.endswith(f"the worst at index {where}")


def test_a_single_number_has_no_index():
    found = expect.within(torch.tensor(3.0), torch.tensor(1.0), 0.25)
    assert (found.expected, found.observed) == ("1.0 at (), within 0.25", "3.0 at (), off by 2")


def test_ranks_that_differ_from_rank_0_are_named():
    found = expect.ranks_agree([torch.zeros(2), torch.zeros(2), torch.ones(2), torch.ones(2)], "the sum")
    assert not found.matches
    assert "rank(s) 2, 3" in found.message


@pytest.mark.parametrize(
    ("observed", "expected", "told"),
    [
        ([1, 2, 3], [1, 2, 4], "item 2"),
        ([1, 2], [1, 2, 3], "2 items instead of 3"),
        ({"a": torch.zeros(1)}, {"a": torch.ones(1)}, "item a, 1 of 1 elements differ"),
        ((1, (2, 3)), (1, (2, 4)), "item 1, item 1"),
    ],
)
def test_items_are_compared_one_by_one(observed, expected, told):
    found = expect.same(observed, expected)
    assert not found.matches
    assert told in found.message


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, (1, "x"), 3, "text", None, [torch.ones(2)]])
def test_a_value_is_the_same_as_itself(value):
    assert expect.same(value, value).matches


def test_tensor_is_never_the_same_as_a_number():
    assert not expect.same(torch.tensor(3), 3).matches


def test_nan_is_above_every_bound():
    assert not expect.at_most(math.nan, 1e9).matches


def test_long_values_are_cut():
    assert len(expect.show(list(range(10_000)))) == expect.MAX_SHOWN


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("1,209", "bytes", "1,209 bytes"),
        ("at most 3e-05", "s", "at most 3e-05 s"),
        ("2T(N-1)/N = 403,200 on each of 4 ranks", "bytes", "2T(N-1)/N = 403,200 bytes on each of 4 ranks"),
        ("1,209 over all ranks, 12 on the busiest", "bytes", "1,209 bytes over all ranks, 12 on the busiest"),
        ("less than the 5.50 of a tree", "latencies", "less than the 5.50 latencies of a tree"),
        ("6.1e+07, where both take as long", "bytes", "6.1e+07 bytes, where both take as long"),
        ("6 messages, 6 steps", "steps", "6 messages, 6 steps"),
        ("2T(N-1)/N", "bytes", "2T(N-1)/N"),
        ("the same", "bytes", "the same"),
        ("12 of them", "", "12 of them"),
    ],
)
def test_a_unit_stands_behind_the_figure_and_not_behind_the_sentence(text, unit, said):
    assert expect.with_unit(text, unit) == said


def test_evidence_has_its_unit_apart_only_where_it_can_follow_both_texts():
    judge = Judge()
    judge.holds(expected="at most 12", observed=7, witness=Witness.TRACE, unit="bytes")
    judge.holds(expected="= 12 on each rank", observed=7, witness=Witness.TRACE, unit="bytes")
    told = [(found.expected, found.observed, found.unit) for found in judge.evidence]
    assert told == [("at most 12", "7", "bytes"), ("= 12 bytes on each rank", "7 bytes", "")]
