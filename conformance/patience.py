"""How long to wait for an implementation that does not come back: long at first, less once it has stalled repeatedly.

A deadlock is told at once and costs nothing. A rank that is alive and never done, in an endless loop or a sleep, costs
the whole deadline of every check that meets it, and hundreds may. Patience is kept for each function by itself, so
that one that loops does not hurry another.
"""

from __future__ import annotations

import dataclasses

from fixtures.world.outcome import Outcomes

FULL_STALLS = 2  # that cost the whole deadline
LEAST_S = 5.0  # and at least so much longer than the slowest run that came back:
SLOWEST_TIMES = 20.0
HOPELESS_STALLS = 8  # after so many without a single run that came back...
LEAST_WITHOUT_HOPE_S = 2.0
CHECK_BUDGET_S = 120.0  # all runs of one check together; the usual is a second


@dataclasses.dataclass(slots=True)
class Patience:
    """What one process has seen of one function of one implementation."""

    num_stalls: int = 0
    slowest_s: float = 0.0  # of the runs that came back

    def deadline_s(self, asked_s: float) -> float:
        """The deadline of the next run: as asked, or less."""
        if self.num_stalls < FULL_STALLS:
            return asked_s
        is_hopeless = self.num_stalls >= HOPELESS_STALLS and self.slowest_s == 0.0
        least_s = LEAST_WITHOUT_HOPE_S if is_hopeless else max(LEAST_S, SLOWEST_TIMES * self.slowest_s)
        halvings = self.num_stalls - FULL_STALLS + 1
        return min(asked_s, max(least_s, asked_s * 0.5**halvings))

    def note(self, outcomes: Outcomes, took_s: float) -> None:
        """Learn from a run: a stall is a rank that was alive at the time limit, without a deadlock."""
        if any(outcome.hang is not None and not outcome.hang.deadlock for outcome in outcomes):
            self.num_stalls += 1
        elif outcomes.all_returned:
            self.slowest_s = max(self.slowest_s, took_s)
