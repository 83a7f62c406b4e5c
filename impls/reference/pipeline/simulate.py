"""When every action of a schedule begins and ends, from what actions cost; and what follows: makespan, bubble, overlap.

No processes and no clock: the times are the longest path through the schedule (`waves`), exact where the costs are.
"""

from __future__ import annotations

import dataclasses
from enum import StrEnum

import numpy as np

from impls.reference.pipeline.actions import Action, Ints, Schedule
from impls.reference.pipeline.costs import Array, Costs, Number, Scaled, scaled
from impls.reference.pipeline.links import Links
from impls.reference.pipeline.waves import Walk, walk
from impls.words import number_of


class ShareOf(StrEnum):
    """What a bubble is measured against. Both are in use, so say which."""

    TOTAL = "total"  # the time that the step takes: (N-1)/(M+N-1) for 1F1B
    IDEAL = "ideal"  # the time that it would take without idling: (N-1)/M


def simulate(schedule: Schedule, costs: Costs | None = None) -> Timeline:
    """The times of all actions; by default forward, input and weight gradient take 1 each.

    ValueError for costs that make no sense, and for a schedule that cannot be worked off (`validate` shows why).
    """
    figures, links = scaled(Costs() if costs is None else costs, schedule), Links.of(schedule)
    done = walk(schedule, links, figures)
    if (stuck := np.flatnonzero(done.reached < schedule.lengths)).size:
        rank = int(stuck[0])
        raise ValueError(
            f"{schedule.name} cannot be worked off: {stuck.size} of {number_of(schedule.num_ranks, 'rank')} wait "
            "for ever, "
            f"rank {rank} with {schedule[rank][int(done.reached[rank])]}; validate(schedule) shows what for"
        )
    return Timeline(schedule=schedule, figures=figures, links=links, done=done)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """The times of a schedule, in the unit of its costs: Fractions, or floats if any cost is a float.

    A rank's bubble is its idle time: with a barrier at both ends of the step (the default) from 0 to the makespan,
    without one only between its first action and its last, as the next step may begin at once on each rank.
    """

    schedule: Schedule
    figures: Scaled
    links: Links
    done: Walk

    @property
    def makespan(self) -> Number:
        """When the last action of all ends."""
        return self.figures.back(self.done.finish.max())

    @property
    def busy(self) -> list[Number]:
        """What each rank works."""
        return self._back(self.done.busy)

    def bubble(self, *, barrier: bool = True) -> list[Number]:
        """What each rank idles."""
        return self._back(self._bubble(barrier))

    def bubble_share(self, of: str = ShareOf.TOTAL, *, barrier: bool = True) -> Number:
        """Idle time of all ranks as a share of their total time, or of the ideal time, in which they work."""
        bubble, busy = self._bubble(barrier).sum(), self.done.busy.sum()
        whole = bubble + busy if ShareOf(of) is ShareOf.TOTAL else busy
        return self.figures.back(bubble) / self.figures.back(whole) if whole else self.figures.back(0)

    def communication_hidden(self) -> Number:
        """The share of all messages' latency in which the rank that gets them works; 1 if there is no latency.

        A rank that is idle while its message travels is exposed to that part of the latency.
        """
        exposed, messages, latency = 0, 0, self.figures.latency
        for rank in range(self.schedule.num_ranks):
            _, end, arrivals = self._times(rank)
            ready = np.concatenate([[0], end[:-1]])
            for arrival, (row, _) in zip(arrivals, self._rows(rank), strict=True):
                waited = arrival - np.maximum(ready, arrival - latency)
                crosses = self.links.crosses[row] != 0
                exposed += np.maximum(waited[crosses], 0).sum().item()
                messages += int(crosses.sum())
        total = messages * latency
        return 1 - self.figures.back(exposed) / self.figures.back(total) if total else self.figures.back(1)

    def spans(self, rank: int) -> list[tuple[Action, Number, Number]]:
        """Every action of `rank`, with its begin and its end."""
        begin, end, _ = self._times(rank)
        return list(zip(self.schedule[rank], self._back(begin), self._back(end), strict=True))

    def _bubble(self, barrier: bool) -> Array:
        if barrier:
            return np.asarray(self.done.finish.max() - self.done.busy)
        first = np.zeros_like(self.done.finish)
        for column in self.schedule.columns:
            first = np.maximum(first, self._arrivals(column[:, 0], column[:, 0] // self.schedule.num_microbatches))
        return np.asarray(self.done.finish - first - self.done.busy)

    def _times(self, rank: int) -> tuple[Array, Array, list[Array]]:
        """Begin and end of the actions of `rank`, and when what they need arrives; what those beside them need too."""
        rows = self._rows(rank)
        cost = self.figures.of([row for row, _ in rows])
        work_before = np.cumsum(cost) - cost
        arrivals = [self._arrivals(slots, row) for row, slots in rows]
        # An action begins after all work before it and all idle time before it; that is the longest wait so far.
        waits = np.max([arrival - work_before for arrival in arrivals], axis=0)
        begin = work_before + np.maximum.accumulate(np.maximum(waits, 0))
        return begin, begin + cost, arrivals

    def _rows(self, rank: int) -> list[tuple[Ints, Ints]]:
        """For the actions of `rank`, and for those beside them if there are pairs: their rows, and their slots."""
        length = np.count_nonzero(self.schedule.slots[rank] >= 0)
        columns = [column[rank][:length] for column in self.schedule.columns]
        return [(slots // self.schedule.num_microbatches, slots) for slots in columns]

    def _arrivals(self, slots: Ints, rows: Ints) -> Array:
        made = self.done.made[slots + self.links.needs[rows]]
        return np.asarray(made + self.links.crosses[rows] * self.figures.latency)

    def _back(self, values: Array) -> list[Number]:
        return [self.figures.back(value) for value in values.tolist()]
