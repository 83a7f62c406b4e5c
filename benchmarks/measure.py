"""How a benchmark is written: a function that yields Ratios, registered by name. Knows nothing of what is measured."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator

Comparison = Callable[[], float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One measured figure and what it has to reach.

    ``value`` is in ``unit``, measured against ``against`` in the same run. ``target`` is ``"<= 2"``, ``">= 300"`` or
    empty for a figure that is printed and asked nothing of.
    """

    name: str
    value: float
    unit: str
    against: str
    target: str = ""

    @property
    def holds(self) -> bool:
        """Whether the figure reaches its target; a figure without a target always does, NaN never."""
        if not self.target:
            return True
        sign, limit = self.target.split()
        return self.value <= float(limit) if sign == "<=" else self.value >= float(limit)

    def as_json(self) -> dict[str, object]:
        """The entry of the JSON list; a figure that is not finite becomes null."""
        value = self.value if math.isfinite(self.value) else None
        return {**dataclasses.asdict(self), "value": value, "holds": self.holds}


Benchmark = Callable[[], Iterable[Ratio]]
BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str) -> Callable[[Benchmark], Benchmark]:
    """Register a benchmark under the name that ``python -m benchmarks NAME`` takes."""

    def register(function: Benchmark) -> Benchmark:
        BENCHMARKS[name] = function
        return function

    return register


def seconds(action: Callable[[], object], *, repeat: int = 5, number: int = 1) -> float:
    """Median wall-clock seconds of one call of ``action`` over ``repeat`` rounds of ``number`` calls."""
    return statistics.median(_rounds(action, repeat, number))


def _rounds(action: Callable[[], object], repeat: int, number: int) -> Iterator[float]:
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(number):
            action()
        yield (time.perf_counter() - start) / number


def interleaved(left: Comparison, right: Comparison, *, repeat: int = 7) -> tuple[float, float]:
    """Medians of two measurements taken turn by turn, so that a loaded machine slows both alike."""
    pairs = [(left(), right()) for _ in range(repeat)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)
