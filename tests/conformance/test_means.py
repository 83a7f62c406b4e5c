"""A mean where a sum is expected is told as such, with the line that says that it is meant; other faults are not."""

from __future__ import annotations

import pytest
import torch

from conformance.checks import Broken, Judge
from conformance.collectives.values import judge_sums, sum_comparison
from fixtures.draws import Case, total_of
from fixtures.world.outcome import Outcomes

NOBODY = Outcomes([])


def told(case: Case, scale: float) -> str:
    """What is said of results that are `scale` times the sum."""
    result = total_of(case.inputs()) * scale
    with pytest.raises(Broken) as caught:
        judge_sums(Judge(seed=0), case, [result] * case.world_size, NOBODY)
    return caught.value.message


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_a_mean_is_told_with_the_line_for_the_table(world_size: int) -> None:
    message = told(Case(world_size=world_size, shape=(50,)), 1 / world_size)
    assert f"the mean, the sum divided by {world_size}" in message
    assert 'op = "mean"' in message


@pytest.mark.parametrize("scale", [0.0, 2.0, -0.5, 0.3])
def test_other_factors_are_no_mean(scale: float) -> None:
    assert "mean" not in told(Case(world_size=4, shape=(50,)), scale)


def test_one_division_and_one_multiplication_stay_within_the_wider_bound() -> None:
    case = Case(world_size=3, shape=(100_000,), values="real")
    mean = total_of(case.inputs()) / 3
    found = sum_comparison(mean * 3, case.inputs(), exact=False, what="", more_roundings=2)
    assert found.matches
    assert not sum_comparison(
        mean * 3 + torch.tensor(1e-4), case.inputs(), exact=False, what="", more_roundings=2
    ).matches
