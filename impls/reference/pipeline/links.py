"""Who waits for whom: the **signals** of a schedule, each made by one action and needed by one. No costs, no times.

F of a stage waits for the activations that F of the stage before makes; B and I wait for the gradient that B or I of
the stage behind makes; W waits for nobody, its I comes earlier in the same list. All actions of one kind and stage
need the same row of signals and make the same row, so small tables say all of it (M cells in a row, S stages):

    row 0            given: the input of the first stage, and whatever need not be waited for
    row 1 + s        activations that stage s makes
    row S + 1 + s    gradients that stage s makes
    row 2 S + 1      given: on the last stage the loss is at hand
    row 2 S + 2      what nobody waits for
"""

from __future__ import annotations

import dataclasses

import numpy as np

from impls.reference.pipeline.actions import Ints, Kind, Schedule
from impls.reference.pipeline.rows import NONE

# Cells between one row of signals and the next that nobody uses. Ranks work on neighbouring rows at nearly the same
# column; if rows were a power of two apart, these cells would compete for the same few lines of the processor's cache.
_GAP = 16


@dataclasses.dataclass(frozen=True, slots=True)
class Links:
    """Tables by the row of an action, ``slot // M``; the last entry, at -1, is for padding: it needs and makes nothing.

    An action needs the signal in cell ``slot + needs[row]`` and makes that in ``slot + makes[row]``; `crosses` tells
    whether what it needs comes from another rank. `given`: the cells that are there from the start. `num_cells`: all.
    """

    needs: Ints
    makes: Ints
    crosses: Ints
    given: Ints
    num_cells: int

    @classmethod
    def of(cls, schedule: Schedule) -> Links:
        """The links between the stages of `schedule`."""
        count, row_length = schedule.num_stages, schedule.num_microbatches + _GAP
        stages, zeros = np.arange(count), np.zeros(count, int)
        nobody, loss = 2 * count + 2, 2 * count + 1
        moves = np.diff(np.array(schedule.placement.ranks)).any(axis=0).astype(int)  # from stage s to s+1
        activations = (stages, stages + 1, [0, *moves])
        gradients = (stages + count + 2, stages + count + 1, [*moves, 0])
        by_kind = {
            Kind.FORWARD: activations,
            Kind.BACKWARD: gradients,
            Kind.INPUT: gradients,
            Kind.WEIGHT: (zeros, zeros + nobody, zeros),
        }
        needed, made, crosses = (np.concatenate([by_kind[kind][column] for kind in Kind]) for column in range(3))
        first_slots = np.append(np.arange(len(needed)), NONE) * schedule.num_microbatches
        return cls(
            needs=np.append(needed, 0) * row_length - first_slots,
            makes=np.append(made, nobody) * row_length - first_slots,
            crosses=np.append(crosses, 0),
            given=np.append(np.arange(row_length), np.arange(row_length) + loss * row_length),
            num_cells=(nobody + 1) * row_length,
        )
