"""What a pipeline loses, by a schedule simulated: to its bubble, to exposed latency, and to a stage that is slower."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.simulate import simulate

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
