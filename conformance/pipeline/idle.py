"""How long the ranks of a schedule idle, against the closed forms in print.

Costs are those of 1/N of the model for one microbatch: F forward, I and W the halves of the backward B, FB a pair that
overlaps. Idle time is with a barrier at both ends of the step, in exact fractions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from conformance.checks import Judge
from conformance.pipeline.judged import Asked
from conformance.verdict import Witness
from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.costs import Costs, Number, PerStage
from impls.reference.pipeline.simulate import Timeline, simulate
from impls.schedule_calls import NUM_CHUNKS


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """Times of one microbatch's works, and of a message between two ranks."""

    f: int = 1
    i: int = 1
    w: int = 1
    fb: Fraction | int | None = None  # F + B if not given: a pair takes as long as its two parts
    latency: Fraction | int = 0

    @property
    def b(self) -> int:
        """The whole backward."""
        return self.i + self.w

    @property
    def pair(self) -> Fraction | int:
        """FB."""
        return self.f + self.b if self.fb is None else self.fb

    def __str__(self) -> str:
        texts = [f"F = {self.f}", f"I = {self.i}", f"W = {self.w}"]
        return ", ".join(texts if self.fb is None else [*texts, f"FB = {self.fb}"])


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Drawn:
    """A drawn case: N ranks, N + `more` microbatches, and times."""

    num_ranks: int
    more: int
    times: Times

    @property
    def num_microbatches(self) -> int:
        """M."""
        return self.num_ranks + self.more

    def __repr__(self) -> str:
        return f"N = {self.num_ranks}, M = {self.num_microbatches}, {self.times}"


@dataclasses.dataclass(frozen=True, slots=True)
class Formula:
    """A closed form of the idle time, as it is written and as it is calculated from N and the times."""

    text: str
    value: Callable[[int, Times], Fraction | int]


_F_AND_B = Formula("(N-1)(F+B)", lambda n, t: (n - 1) * (t.f + t.b))
IDLE: Mapping[str, Formula] = {
    "gpipe": _F_AND_B,
    "one_f_one_b": _F_AND_B,
    "interleaved_1f1b": Formula(f"(N-1)(F+B)/{NUM_CHUNKS}", lambda n, t: Fraction((n - 1) * (t.f + t.b), NUM_CHUNKS)),
    "zb_h1": Formula("(N-1)(F+B-2W)", lambda n, t: (n - 1) * (t.f + t.b - 2 * t.w)),  # W <= min(F, I)
    "zb_h2": Formula("(N-1)F", lambda n, t: (n - 1) * t.f),  # F = I = W
    "zbv": Formula("(N-1)F/2", lambda n, t: Fraction((n - 1) * t.f, 2)),  # F = I = W
    # I = F, W <= I
    "dualpipe": Formula("(N/2-1)(FB+B-3W)", lambda n, t: Fraction(n - 2, 2) * (t.pair + t.b - 3 * t.w)),
    "dualpipev": Formula("(N-1)(FB+B-3W)/2", lambda n, t: Fraction(n - 1, 2) * (t.pair + t.b - 3 * t.w)),
}
ENOUGH: Mapping[str, Callable[[int], int]] = {  # from which M on it holds
    "gpipe": lambda n: 1,
    "one_f_one_b": lambda n: 1,
    "interleaved_1f1b": lambda n: n,
    "zb_h1": lambda n: n,
    "zb_h2": lambda n: 2 * n - 1,
    "zbv": lambda n: 2 * n - 1,
    "dualpipe": lambda n: 2 * n,
    "dualpipev": lambda n: 2 * n,
}


def timeline(schedule: Schedule, times: Times = Times()) -> Timeline:
    """When everything happens."""
    costs = Costs(forward=times.f, input=times.i, weight=times.w, pair=times.fb, latency=times.latency)
    return simulate(schedule, costs.of_rank(schedule))


def uneven(schedule: Schedule, slow: Number = 2) -> Timeline:
    """The same where the last stage takes `slow` times as long as each of the others."""
    each: PerStage = [1] * (schedule.num_stages - 1) + [slow]
    return simulate(schedule, Costs(forward=each, input=each, weight=each).of_rank(schedule))


def mean(figures: Sequence[Number]) -> Fraction:
    """Of exact figures."""
    return sum((Fraction(figure) for figure in figures), Fraction(0)) / len(figures)


def judge_idle(judge: Judge, asked: Asked, schedule: Schedule, times: Times) -> Fraction:
    """Every rank idles as long as the closed form says: no longer, and no shorter. The idle time.

    Where a pair takes less than its parts, ranks with fewer pairs work longer: then it is the longest idle time.
    """
    formula = IDLE[asked.name]
    expected = Fraction(formula.value(asked.num_ranks, times))
    found = [Fraction(idle) for idle in timeline(schedule, times).bubble()]
    judged = [max(found)] if times.fb is not None else found
    for rank, idle in enumerate(judged):
        if idle != expected:
            judge.violated(
                f"{asked}, {times}: rank {found.index(idle) if times.fb is not None else rank} idles for {idle}, "
                f"{_likely(schedule, asked, idle, expected)}",
                expected=f"{formula.text} = {expected}",
                observed=str(idle),
                witness=Witness.SIMULATION,
            )
    return expected


def _likely(schedule: Schedule, asked: Asked, idle: Fraction, expected: Fraction) -> str:
    formula = IDLE[asked.name].text
    if idle > expected:
        return f"{idle - expected} longer than {formula} = {expected}"
    if asked.name in ("dualpipe", "dualpipev") and schedule.beside is None:
        return f'less than {formula} = {expected}: no pair is one action that overlaps, as "F2.5&B5.1" is'
    return f"less than {formula} = {expected}, the least for this schedule: it is another one, with a name of its own"


def percent(share: Number) -> str:
    """A share of time, for readers."""
    return f"{float(share):.1%}"
