"""Where replicas part: the first step, the first name, and the ranks in the minority."""

from __future__ import annotations

import torch

from fixtures.witness.parting import State, first_parting


def _history(*values: float, other: float = 0.0) -> list[State]:
    return [{"weight": torch.tensor([1.0, value]), "bias": torch.tensor([other])} for value in values]


def test_replicas_that_never_part() -> None:
    assert first_parting([_history(1, 2, 3)] * 3) is None


def test_the_minority_is_named_with_the_first_step_and_value() -> None:
    parting = first_parting([_history(1, 2, 3), _history(1, 2.5, 3), _history(1, 2, 4)])
    assert parting is not None
    assert (parting.step, parting.name, parting.ranks, parting.equal) == (1, "weight", (1,), ("bias",))
    assert parting.sentence == "the ranks part at step 1 in weight: rank 1 differs from the others by up to 0.5"


def test_without_a_majority_all_ranks_are_named() -> None:
    parting = first_parting([_history(1), _history(2)])
    assert parting is not None
    assert parting.ranks == (0, 1)
    assert "ranks 0, 1 differ from each other" in parting.sentence


def test_all_values_that_differ_in_that_step_are_known() -> None:
    parting = first_parting([_history(1), _history(2, other=5)])
    assert parting is not None
    assert parting.also == ("bias",)


def test_a_nan_is_a_difference_and_a_tolerance_allows_a_small_one() -> None:
    assert first_parting([_history(1), _history(float("nan"))], tolerance=10.0) is not None
    assert first_parting([_history(1), _history(1.001)], tolerance=0.01) is None
