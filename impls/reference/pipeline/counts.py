"""What the order alone says, whatever the actions cost: activations held, chunks paired, copies of stages."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from impls.reference.pipeline.actions import CODES, Ints, Kind, Schedule

_FREES = [CODES[Kind.BACKWARD], CODES[Kind.WEIGHT]]


def peak_activations(schedule: Schedule) -> list[Fraction]:
    """The most activations that each rank holds at a time, in those of one microbatch on 1/N of the model.

    A microbatch's activations of a stage are held from its F to the end of its B, or of its W where backward is split.
    """
    share = Fraction(schedule.num_ranks, schedule.num_stages)
    return [share * int(held(schedule, rank).max(initial=0)) for rank in range(schedule.num_ranks)]


def held(schedule: Schedule, rank: int) -> Ints:
    """During each action of `rank`, how many microbatches' activations it holds, all of its stages together."""
    kinds = [column[rank] // schedule.numbering.per_kind for column in schedule.columns]
    taken = sum((kind == CODES[Kind.FORWARD]).astype(int) for kind in kinds)
    freed = sum(np.isin(kind, _FREES).astype(int) for kind in kinds)
    during: Ints = np.cumsum(taken) - np.cumsum(freed) + freed
    return during[: np.count_nonzero(schedule.slots[rank] >= 0)]


def paired_share(schedule: Schedule) -> list[Fraction]:
    """The share of each rank's forwards and backwards that overlap with one of the other kind (W is not counted)."""
    return [_paired(schedule, rank) for rank in range(schedule.num_ranks)]


def _paired(schedule: Schedule, rank: int) -> Fraction:
    slots = schedule.slots[rank]
    chunks = np.count_nonzero((slots >= 0) & (slots // schedule.numbering.per_kind != CODES[Kind.WEIGHT]))
    pairs = 0 if schedule.beside is None else np.count_nonzero(schedule.beside[rank] >= 0)
    return Fraction(int(2 * pairs), int(chunks + pairs)) if chunks else Fraction(0)


def copies(schedule: Schedule) -> list[int]:
    """How many ranks hold each stage: so many copies of its parameters there are."""
    holders = [schedule.stages_of(rank) for rank in range(schedule.num_ranks)]
    return [sum(stage in stages for stages in holders) for stage in range(schedule.num_stages)]
