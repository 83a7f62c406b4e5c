"""The bubble is what a pipeline loses with few microbatches; with many, latency or a slower stage costs more."""

from __future__ import annotations

import itertools

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.judged import Asked, legal
from conformance.strategies.pipeline_losses import LATENCY, SLOWER, losses
from conformance.verdict import Witness

MULTIPLES = (1, 2, 4, 16)  # of N, the numbers of microbatches


@claim("strategies.pipeline.cost", provides=["one_f_one_b|gpipe"])
@pytest.mark.parametrize("name", ["one_f_one_b", "gpipe"])
@pytest.mark.parametrize("num_ranks", [2, 4, 8])
def test_the_bubble_is_the_main_loss_for_few_microbatches_and_not_for_many(
    subject: Subject, judge: Judge, num_ranks: int, name: str
) -> None:
    subject.require(name)
    found = [
        losses(schedule)
        for schedule in legal(subject, judge, [Asked(name, num_ranks, m * num_ranks) for m in MULTIPLES])
    ]
    told = "; ".join(each.told() for each in found)
    shares = [each.share for each in found]
    if any(later >= earlier for earlier, later in itertools.pairwise(shares)):
        _broken(judge, f"{name} on {num_ranks} ranks: the bubble's share of the time does not fall with M", told)
    few, *_, many = found
    if few.bubble <= few.largest_other:
        _broken(
            judge, f"{name} on {num_ranks} ranks: the bubble is not the main loss for {num_ranks} microbatches", told
        )
    if many.bubble >= many.largest_other:
        _broken(judge, f"{name} on {num_ranks} ranks: the bubble is still the main loss with many microbatches", told)
    judge.holds(
        expected="a share that falls with M, until latency or a slower stage costs more",
        observed=told,
        witness=Witness.SIMULATION,
        message=f"time lost on {num_ranks} ranks under {name}, in units of a forward; a message takes {LATENCY}, the "
        f"last stage {SLOWER} of the mean",
        examples=len(found),
    )


def _broken(judge: Judge, message: str, told: str) -> None:
    judge.violated(
        message,
        expected="a share that falls with M, until latency or a slower stage costs more",
        observed=told,
        witness=Witness.SIMULATION,
    )
