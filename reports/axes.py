"""Axes of the pictures: from values to places, and the round values that are written beside them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from enum import StrEnum

_FEW = 6  # ticks of an axis, about


class Kind(StrEnum):
    """How values are spread and written."""

    LINEAR = "linear"
    BYTES = "bytes"  # powers of two
    SHARE = "share"  # in percent
    LOG = "log"  # powers of ten


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One mark of an axis: where it is and what is written there."""

    at: float
    label: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """From ``low`` at ``begin`` to ``high`` at ``end``, in the picture's coordinates. ``unit`` is of the labels."""

    kind: Kind
    low: float
    high: float
    begin: float
    end: float
    unit: str
    scale: float  # of the unit

    def place(self, value: float) -> float:
        """Where a value lies; of a logarithmic axis, where one that it has no place for would be cut off."""
        stretch = math.log10 if self.kind is Kind.LOG else float
        low, high = stretch(self.low), stretch(self.high)
        part = (stretch(max(value, self.low) if self.kind is Kind.LOG else value) - low) / (high - low)
        return round(self.begin + part * (self.end - self.begin), 2)

    def ticks(self) -> tuple[Tick, ...]:
        """Round values over the whole axis."""
        return self.marks(self._round_values())

    def marks(self, values: Iterable[float]) -> tuple[Tick, ...]:
        """Ticks at these values."""
        return tuple(Tick(at=self.place(value), label=self._label(value)) for value in values)

    def _round_values(self) -> list[float]:
        if self.kind is Kind.LOG:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers[:: math.ceil(len(powers) / _FEW) or 1]]
        step = _STEPS[self.kind]((self.high - self.low) / _FEW)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _label(self, value: float) -> str:
        return f"{value * 100:g}%" if self.kind is Kind.SHARE else f"{value / self.scale:g}"


def axis(kind: Kind, low: float, high: float, begin: float, end: float) -> Axis:
    """An axis that has room for both values."""
    if kind is Kind.LOG:
        low, high = max(low, 1e-12), max(high, 1e-12)
    if not high > low:
        low, high = (low / 2, low * 2) if kind is Kind.LOG else (low, low + 1.0)
    scale, unit = _byte_unit(high) if kind is Kind.BYTES else (1.0, "")
    return Axis(kind=kind, low=low, high=high, begin=begin, end=end, unit=unit, scale=scale)


def nice_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, not below ``rough``."""
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * 0.999)


def _byte_step(rough: float) -> float:
    """The power of two above ``rough``: bytes read best so."""
    return float(2 ** math.ceil(math.log2(rough))) if rough > 0 else 1.0


_STEPS: dict[Kind, Callable[[float], float]] = {
    Kind.LINEAR: nice_step,
    Kind.SHARE: nice_step,
    Kind.BYTES: _byte_step,
}


def _byte_unit(top: float) -> tuple[float, str]:
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if top >= scale:
            return float(scale), unit
    return 1.0, "B"
