"""What a rank holds, as the checks of this section measure and show it: per parameter, and in GB at nominal size.

GB is 1e9 bytes. A figure is measured on real tensors and real ranks for a small shape, and on fake tensors for a
published one. Where an implementation does not work on fake tensors, the first alone decides, and that is said.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

from conformance.checks import Judge, Subject, failure_text, verdict_of
from conformance.expect import Comparison
from conformance.judge import Broken
from conformance.verdict import Verdict, Witness
from fixtures import weigh_programs
from fixtures.shapes import SMALL, Shape
from fixtures.weighing import STATES, Recipe, Weight
from impls.reference.memory import Held

GB = 1e9
UNIT = "bytes per parameter"
SMALL_SLACK = 0.02  # of the small shape: a step counter of 4 bytes for each tensor, padding of shards
SLACK = 1e-3  # of the published ones


def on_ranks(subject: Subject, world_size: int, recipe: Recipe) -> list[Weight]:
    """The weight of the small shape on each of `world_size` real ranks."""
    outcomes = subject.run(weigh_programs.on_ranks, world_size, dataclasses.asdict(SMALL), dataclasses.asdict(recipe))
    return weigh_programs.weights(outcomes.values)


def at_size(subject: Subject, judge: Judge, *items: tuple[Shape, Recipe, int]) -> list[Weight]:
    """The weight of rank 0 for each shape, recipe and number of ranks; none where that cannot be weighed."""
    asked = [weigh_programs.asked(*item) for item in items]
    outcomes = subject.observe(weigh_programs.at_size, 1, asked, bare=True, trace=False, deadline_s=120.0)
    if verdict_of(outcomes) is Verdict.NOT_PROVIDED:
        raise Broken(Verdict.NOT_PROVIDED, failure_text(outcomes))
    found = outcomes.values[0] if outcomes.all_returned else outcomes.describe()
    if not isinstance(found, str):
        return weigh_programs.weights(found)
    judge.holds(
        expected="a figure at full size",
        observed="a figure on real ranks alone",
        witness=Witness.MEMORY,
        message=f"not weighed at full size: {found}",
    )
    return []


def mean(weights: Sequence[Weight], category: str) -> float:
    """Bytes per parameter, on average over the ranks: which of them has the larger share is a matter of the cut."""
    return sum(weight.per_parameter(category) for weight in weights) / len(weights)


def close(observed: float, expected: Fraction | float, slack: float) -> Comparison:
    """Within `slack`, as a part of what is expected."""
    wanted = float(expected)
    return Comparison(
        matches=abs(observed - wanted) <= slack * wanted,
        expected=f"{wanted:.4g}",
        observed=f"{observed:.4g}",
        error=abs(observed - wanted),
    )


def judge_parts(
    judge: Judge,
    weights: Sequence[Weight],
    expected: Held,
    message: str,
    *,
    beside: float = 0.0,
    slack: float = SMALL_SLACK,
) -> None:
    """Bytes per parameter of each state, on average over the ranks, as they should be up to `slack`.

    `beside` is what else a rank may hold: buckets, for one.
    """
    found = {category: close(mean(weights, category), getattr(expected, category), slack) for category in STATES}
    for category, comparison in found.items():
        if not comparison.matches:
            judge.that(comparison, witness=Witness.MEMORY, unit=UNIT, message=f"{message}, {category}")
    other = mean(weights, "other")
    if other > beside + slack:
        judge.violated(
            f"{message}: a rank holds {other:.3g} bytes per parameter beside its parameters, gradients and optimizer "
            "state",
            expected=f"at most {beside:g}",
            observed=f"{other:.3g}",
            witness=Witness.MEMORY,
            unit=UNIT,
        )
    judge.holds(
        expected=" + ".join(comparison.expected for comparison in found.values()),
        observed=" + ".join(comparison.observed for comparison in found.values()),
        witness=Witness.MEMORY,
        unit=UNIT,
        message=f"{message}: {', '.join(f'{name} {comparison.observed}' for name, comparison in found.items())}"
        + (f", and {other:.3g} beside them" if other > slack else ""),
    )


def judge_gigabytes(judge: Judge, weight: Weight, shape: Shape, expected: Fraction, message: str) -> None:
    """GB of one rank at nominal size: `expected` bytes per parameter, by the closed form, times the nominal P.

    `shape` is the whole model, also where fewer of its layers were weighed.
    """
    held = weight.per_parameter()
    judge.that(
        close(held * shape.nominal / GB, float(expected) * shape.nominal / GB, SLACK),
        witness=Witness.MEMORY,
        unit="GB",
        message=f"{message}: {held:.4g} bytes per parameter, which is {held * shape.nominal / GB:.4g} GB for "
        f"{nominal(shape)} and {held * shape.num_parameters / GB:.4g} GB for the {shape.num_parameters:,} of "
        f"{shape.name}",
    )


def nominal(shape: Shape) -> str:
    """The number by which the model is known, as a text."""
    return f"{shape.nominal / GB:g}e9 parameters"
