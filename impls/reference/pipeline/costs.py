"""What the actions of a schedule cost, and how these figures become whole numbers so that sums stay exact."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from impls.reference.pipeline.actions import Ints, Kind, Schedule
from impls.reference.pipeline.rows import NONE
from impls.words import number_of

Number = int | Fraction | float
PerStage = Number | Sequence[Number]  # one figure for all stages, or one for each
Array = NDArray[Any]  # of integers or floats


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Time of each kind of action for one microbatch on one stage, in any unit: one figure, or one for each stage.

    `backward` is that of a full B, `input` + `weight` if not given. `pair` is that of a forward and a backward which
    overlap (by the forward's stage), the sum of both if not given. `latency` is what a message between two ranks takes
    after the action that made it; it occupies no rank. Whole numbers and Fractions are calculated with exactly.
    """

    forward: PerStage = 1
    input: PerStage = 1
    weight: PerStage = 1
    backward: PerStage | None = None
    pair: PerStage | None = None
    latency: Number = 0

    def of_rank(self, schedule: Schedule) -> Costs:
        """The costs of the schedule's stages, where `self` has those of 1/N of the model on N ranks.

        A stage of 2N has half of it, so that schedules become comparable.
        """
        share = Fraction(schedule.num_ranks, schedule.num_stages)
        names = ("forward", "input", "weight", "backward", "pair")
        changed: dict[str, Any] = {name: _times(share, getattr(self, name)) for name in names}
        return dataclasses.replace(self, **changed)


@dataclasses.dataclass(frozen=True, slots=True)
class Scaled:
    """Costs as arrays of one type: whole numbers of 1/`unit` each, or floats where `unit` is None.

    `by_row` [kinds * S + 1]: the cost of slots by their row (``slot // M``), and 0 for none. `pair` [S]: that of a
    pair, by its forward's stage; None where a pair costs what its two actions do.
    """

    by_row: Array
    pair: Array | None
    latency: Any
    unit: int | None

    def of(self, rows: Sequence[Ints]) -> Array:
        """Costs of actions from their rows, and the rows of those beside them if there are pairs; -1 is none."""
        first, *beside = rows
        cost = at(self.by_row, first)
        for second in beside:
            if self.pair is None:
                cost = cost + at(self.by_row, second)
            else:
                cost = np.where(second == NONE, cost, self.pair[first % len(self.pair)])
        return cost

    def back(self, value: Any) -> Number:
        """A sum of such figures in the unit of the costs: a Fraction, or a float."""
        return float(value) if self.unit is None else Fraction(int(value), self.unit)


def at(table: Array, index: Ints) -> Array:
    """``table[index]``, with -1 for the last entry, in less time for short arrays."""
    return table.take(index, mode="wrap")


def scaled(costs: Costs, schedule: Schedule) -> Scaled:
    """`costs` for calculating with `schedule`. ValueError for a cost below 0 or infinite, or not one for each stage."""
    forward, inputs, weights = (_each(costs, kind, schedule.num_stages) for kind in ("forward", "input", "weight"))
    backward = [i + w for i, w in zip(inputs, weights, strict=True)]
    if costs.backward is not None:
        backward = _each(costs, "backward", schedule.num_stages)
    by_kind = {Kind.FORWARD: forward, Kind.BACKWARD: backward, Kind.INPUT: inputs, Kind.WEIGHT: weights}
    rows = [*(cost for kind in Kind for cost in by_kind[kind]), 0]
    pair = [] if costs.pair is None else _each(costs, "pair", schedule.num_stages)
    (latency,) = _each(costs, "latency", 1)
    figures = [*rows, *pair, latency]
    if not all(isinstance(figure, Rational) for figure in figures):
        return Scaled(np.array(rows, float), np.array(pair, float) if pair else None, float(latency), None)
    unit = math.lcm(*(Fraction(figure).denominator for figure in figures))
    whole = [int(figure * unit) for figure in figures]
    dtype = _integers(3 * max(whole) * schedule.slots.size)  # no time is longer than all actions and messages in turn
    by_row, by_pair = np.array(whole[: len(rows)], dtype), np.array(whole[len(rows) : -1], dtype)
    return Scaled(by_row, by_pair if pair else None, dtype(whole[-1]), unit)


def _integers(bound: int) -> type[np.signedinteger[Any]]:
    """The smallest integers that hold sums up to `bound`, and four times that for what is not known yet."""
    if bound >= 2**61:
        raise ValueError(
            "these costs are too finely divided to be added exactly in 64 bits: round them, or give floats"
        )
    return np.int32 if bound < 2**29 else np.int64


def _each(costs: Costs, name: str, count: int) -> list[Any]:
    given = getattr(costs, name)
    figures = list(given) if isinstance(given, Sequence | np.ndarray) else [given] * count
    if len(figures) != count:
        raise ValueError(
            f"{name} has {len(figures)} costs for {number_of(count, 'stage')}: give one for each stage, or one for all"
        )
    for figure in figures:
        if not 0 <= figure < math.inf:
            raise ValueError(f"{name} = {figure}: a cost is a finite number of at least 0")
    return figures


def _times(share: Fraction, given: PerStage | None) -> PerStage | None:
    if given is None:
        return None
    return [share * figure for figure in given] if isinstance(given, Sequence | np.ndarray) else share * given
