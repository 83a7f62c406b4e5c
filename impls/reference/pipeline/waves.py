"""The longest path through a schedule: when each signal is made. A few array operations for all ranks at once.

An action begins when the rank's previous one has ended and the signal that it needs has arrived. In a **wave** every
rank goes one action further, if that signal is known by then. There are little more waves than actions in the longest
list, so the cost is linear in the number of actions, and for many ranks little more than that of reading them.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from impls.reference.pipeline.actions import Ints, Schedule
from impls.reference.pipeline.costs import Array, Scaled, at
from impls.reference.pipeline.links import Links


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """How far the ranks came, in the figures of `Scaled`.

    `made` [cells of `Links`]: when each signal is made. `finish` and `busy` [N]: the end of each rank's last action,
    and what all of them cost. `reached` [N]: how many of its actions a rank could do, less than all in a deadlock.
    """

    made: Array
    finish: Array
    busy: Array
    reached: Ints


def walk(schedule: Schedule, links: Links, figures: Scaled) -> Walk:
    """Work off `schedule`, as far as it goes."""
    dtype = figures.by_row.dtype
    # A signal that is not known is made so late that no latency makes it look known, nor too large for its type.
    never, unknown = (np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).max // 2, np.iinfo(dtype).max // 4)
    made = np.full(links.num_cells, never, dtype)
    made[links.given] = 0
    nobody = links.num_cells - 1
    delay = links.crosses.astype(dtype) * figures.latency
    columns = [column.ravel() for column in schedule.columns]
    first = np.arange(schedule.num_ranks) * schedule.slots.shape[1]
    place, end_of_list = first.copy(), first + schedule.lengths
    now, busy = np.zeros((2, schedule.num_ranks), dtype)
    while True:
        slots = [column.take(place, mode="clip").astype(np.intp) for column in columns]
        rows = [slot // schedule.num_microbatches for slot in slots]
        begin = now
        for slot, row in zip(slots, rows, strict=True):
            arrival = at(made, slot + at(links.needs, row))
            begin = np.maximum(begin, arrival + at(delay, row) if figures.latency else arrival)
        ready = (begin < unknown) & (place < end_of_list)
        if not ready.any():
            return Walk(made=made, finish=now, busy=busy, reached=place - first)
        cost = figures.of(rows)
        end = begin + cost
        np.copyto(now, end, where=ready)
        busy += cost * ready
        for slot, row in zip(slots, rows, strict=True):
            made[np.where(ready, slot + at(links.makes, row), nobody)] = end
        place += ready
