"""How long a training step takes on one rank whose collectives run beside its computation.

The rank goes through its events in order: it computes, starts collectives, waits for them. A stream works off the
collectives started on it one after the other, as a communicator does. All ranks do the same at the same time, so that
one stands for all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True, slots=True)
class Compute:
    """The device is busy for so many seconds."""

    seconds: float
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """A collective is handed over, to take so many seconds once it is its turn; the rank goes on at once."""

    key: str
    seconds: float
    stream: str = "all"


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """The rank goes on when the collective of this key is over."""

    key: str


Event = Compute | Start | Wait


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Where the seconds of a step go."""

    total_s: float
    compute_s: float
    communication_s: float  # of all collectives together

    @property
    def exposed_s(self) -> float:
        """What the step takes longer than its computation."""
        return max(0.0, self.total_s - self.compute_s)

    @property
    def hidden(self) -> float:
        """The share of communication beside which the rank computed; 1 when there is none."""
        if not self.communication_s:
            return 1.0
        return min(1.0, max(0.0, 1 - self.exposed_s / self.communication_s))


def simulate(events: Iterable[Event]) -> StepTime:
    """The times of a step. ValueError for a wait for what was not started."""
    now = computed = communicated = 0.0
    free: dict[str, float] = {}  # by stream: when its last collective is over
    over: dict[str, float] = {}
    for event in events:
        if isinstance(event, Compute):
            now += event.seconds
            computed += event.seconds
        elif isinstance(event, Start):
            free[event.stream] = max(now, free.get(event.stream, 0.0)) + event.seconds
            over[event.key] = free[event.stream]
            communicated += event.seconds
        elif event.key in over:
            now = max(now, over[event.key])
        else:
            raise ValueError(f"the step waits for {event.key!r}, which was not started before")
    return StepTime(total_s=max(now, *free.values(), 0.0), compute_s=computed, communication_s=communicated)
