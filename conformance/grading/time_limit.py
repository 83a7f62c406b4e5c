"""The time that all checks of one implementation may take in one process; its clock starts when the first one runs.

What is not answered by then is ``lost``: it was not seen to be wrong, and it earns nothing. Runs that do not come back,
in an endless loop or a sleep, would take all of it; so they have a share, those of one function and those of all
together, and the functions that do come back have time for their points.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Collection, Sequence

USED_UP = "the time limit of this implementation"
NO_MORE = "its checks get no more"
LEAST_S = 0.1  # of a deadline: below that no rank could answer
OF_ONE = 1 / 4  # of the limit: what the runs of one function that do not come back may take,
OF_ALL = 1 / 2  # and those of all functions together;
OF_REST = 1 / 8  # once that is gone, what is left of the limit is for a run of one that has come back so far


@dataclasses.dataclass(slots=True)
class TimeLimit:
    """A number of seconds, infinite where none was asked for."""

    limit_s: float = math.inf
    stalled_s: float = 0.0  # in runs that did not come back
    _began: float | None = None
    _parts: dict[str, Part] = dataclasses.field(default_factory=dict)

    def left_s(self) -> float:
        """What is left; starts the clock."""
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        return self._began + self.limit_s - now

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.limit_s <= 0 if self._began is None else self.left_s() <= 0

    def told(self, when: str) -> str:
        """The sentence for a check that found no time, or no end in it."""
        return f"{USED_UP}, {self.limit_s:g} s, was used up {when} this check"

    def part(self, function: str) -> Part:
        """What one function may have of it; the same one for the same name."""
        return self._parts.setdefault(function, Part(self, function))


@dataclasses.dataclass(slots=True)
class Part:
    """The runs of one function, and what they may take."""

    limit: TimeLimit = dataclasses.field(default_factory=TimeLimit)
    function: str = ""
    num_stalls: int = 0
    stalled_s: float = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether no run can be made any more."""
        return self.limit.is_over or (self.num_stalls > 0 and self._room_s() < LEAST_S)

    def bound_s(self, asked_s: float) -> float:
        """The deadline of the next run: as asked, or less."""
        return min(asked_s, max(LEAST_S, min(self.limit.left_s(), self._room_s())))

    def note(self, took_s: float, *, stalled: bool) -> None:
        """Learn from a run: whether a rank was alive at the deadline, without a deadlock."""
        if stalled:
            self.num_stalls += 1
            self.stalled_s += took_s
            self.limit.stalled_s += took_s

    def told(self) -> str:
        """The sentence for a check that found no time, or no end in it."""
        if self.limit.is_over or not self.num_stalls:
            return self.limit.told("in")
        runs = "a run" if self.num_stalls == 1 else f"{self.num_stalls} runs"
        return (
            f"{self.function} did not come back in {runs}, which took {self.stalled_s:.0f} s of {USED_UP}, "
            f"{self.limit.limit_s:g} s: {NO_MORE}, so that other functions have time for theirs"
        )

    def _room_s(self) -> float:
        of_all_s = OF_ALL * self.limit.limit_s - self.limit.stalled_s
        if self.num_stalls:
            return min(OF_ONE * self.limit.limit_s - self.stalled_s, of_all_s)
        return max(of_all_s, OF_REST * self.limit.left_s())


def function_of(asks: Sequence[str], offered: Collection[str]) -> str:
    """What a check is about, of the names that it asks for (``a|b`` for either) and those that there are."""
    exact = [name for name in asks if "|" not in name]
    choices = [choice for names in asks for choice in names.split("|") if choice in offered]
    return " with ".join(dict.fromkeys(exact)) or " or ".join(dict.fromkeys(choices))
