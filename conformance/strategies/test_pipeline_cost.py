"""What a pipeline loses, from the schedules simulated: to the bubble, to exposed latency, to a slower stage."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.judged import Asked, legal
from conformance.verdict import Witness
from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.simulate import simulate

MULTIPLES = (1, 2, 4, 16)  # of N, the numbers of microbatches
LATENCY = Fraction(1, 4)  # of a message, where F = I = W = 1
SLOWER = Fraction(5, 4)  # the last stage, where all stages together cost N


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Time beyond a rank's share of the work: of the bubble alone, and what the other two add to the step."""

    num_microbatches: int
    bubble: Fraction
    latency: Fraction
    imbalance: Fraction
    share: Fraction  # of the bubble in the total time, without the others

    @property
    def largest_other(self) -> Fraction:
        """The larger of the other two."""
        return max(self.latency, self.imbalance)

    def told(self) -> str:
        """``M = 8: bubble 9 (27.3 %), latency 4, a slower stage 5.75``."""
        return (
            f"M = {self.num_microbatches}: bubble {float(self.bubble):g} ({float(self.share):.1%}), latency "
            f"{float(self.latency):g}, a slower stage {float(self.imbalance):g}"
        )


def losses(schedule: Schedule) -> Losses:
    """Of equal stages; with latency; and of stages of which the last is slower and the others as much faster."""
    n = schedule.num_ranks
    others = (n - SLOWER) / (n - 1)
    each = [*[others] * (n - 1), SLOWER]
    plain = simulate(schedule)
    late = simulate(schedule, Costs(latency=LATENCY))
    uneven = simulate(schedule, Costs(forward=each, input=each, weight=each))
    step = Fraction(plain.makespan)
    return Losses(
        num_microbatches=schedule.num_microbatches,
        bubble=step - 3 * schedule.num_microbatches,
        latency=Fraction(late.makespan) - step,
        imbalance=Fraction(uneven.makespan) - step,
        share=Fraction(plain.bubble_share()),
    )


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
