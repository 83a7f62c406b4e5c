"""A pipeline schedule as data: for every rank the ordered list of what it computes. Knows no costs and no processes.

    rank 0:  F0 F1 F2 B0 F3 B1 B2 B3          F forward, B full backward, or its two halves:
    rank 1:  F0 B0 F1 B1 F2 B2 F3 B3          I gradient of the input, W gradients of the weights

Within a rank actions run one after another. Across ranks only data orders them: F of a stage needs the same
microbatch's F of the stage before, B and I need B or I of the stage behind. N ranks, M microbatches, S stages.

A list of millions of actions is kept as numbers. The **slot** of an action counts all actions that there can be:
``slot = (kind * S + stage) * M + microbatch``, so the M slots of one kind and stage are an `arange`, and a generator
cuts and interleaves such ranges (see `Numbering`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from impls.reference.pipeline.placement import Placement
from impls.reference.pipeline.rows import NONE, PAIRS, Row, pair, split

Ints = NDArray[np.integer[Any]]


class Kind(StrEnum):
    """What an action computes for one microbatch on one stage."""

    FORWARD = "F"
    BACKWARD = "B"  # both gradients, input and weights, in one go
    INPUT = "I"  # gradient of the stage's input: the stage before waits for it
    WEIGHT = "W"  # gradients of the weights: nobody waits for them


KINDS = tuple(Kind)
CODES = {kind: code for code, kind in enumerate(KINDS)}


@dataclasses.dataclass(frozen=True, slots=True)
class Action:
    """One entry of a rank's list. With `beside`, a forward and a backward that overlap as one action (DualPipe)."""

    kind: Kind
    stage: int
    microbatch: int
    beside: Action | None = None

    def __str__(self) -> str:
        own = f"{self.kind}{self.stage}.{self.microbatch}"
        return f"{own}&{self.beside}" if self.beside else own

    @classmethod
    def parse(cls, text: str, stage: int | None = None) -> Action:
        """Read ``F0.3`` (stage 0, microbatch 3), ``F3`` where `stage` is given, or a pair ``F0.3&B7.1``."""
        first, *rest = text.strip().split("&")
        place, dot, microbatch = first[1:].rpartition(".")
        numbers = (place, microbatch) if dot else (str(stage), microbatch)
        if first[:1] not in CODES or len(rest) > 1 or not all(number.isdecimal() for number in numbers):
            example = "F0.3 (stage 0, microbatch 3)" if stage is None else "F3 (microbatch 3) or F0.3"
            raise ValueError(
                f"{text!r} is no action: expected a kind of {', '.join(KINDS)} and numbers, as in {example}"
            )
        beside = cls.parse(rest[0], stage) if rest else None
        return cls(Kind(first[0]), int(numbers[0]), int(numbers[1]), beside)

    @property
    def parts(self) -> tuple[Action, ...]:
        """The action alone, or both of a pair, without `beside`."""
        return (self,) if self.beside is None else (dataclasses.replace(self, beside=None), self.beside)


@dataclasses.dataclass(frozen=True, slots=True)
class Numbering:
    """Actions as numbers, for a given number of stages and of microbatches."""

    num_stages: int
    num_microbatches: int

    @property
    def per_kind(self) -> int:
        """How many slots one kind has."""
        return self.num_stages * self.num_microbatches

    @property
    def dtype(self) -> type[np.signedinteger[Any]]:
        """The smallest integers that hold every slot."""
        return np.int32 if len(KINDS) * self.per_kind < 2**31 else np.int64

    def of(self, kind: Kind, stage: int) -> Ints:
        """The slots of all microbatches, in their order: slice it to get some of them."""
        first = self.slot(kind, stage, 0)
        return np.arange(first, first + self.num_microbatches, dtype=self.dtype)

    def slot(self, kind: Kind, stage: int, microbatch: int) -> int:
        """The number of one action."""
        if not (0 <= stage < self.num_stages and 0 <= microbatch < self.num_microbatches):
            raise ValueError(
                f"{kind}{stage}.{microbatch} is outside the schedule: there are stages 0 to {self.num_stages - 1} "
                f"and microbatches 0 to {self.num_microbatches - 1}"
            )
        return (CODES[kind] * self.num_stages + stage) * self.num_microbatches + microbatch

    def action(self, slot: int, beside: int = NONE) -> Action:
        """The action that a number stands for."""
        row, microbatch = divmod(int(slot), self.num_microbatches)
        code, stage = divmod(row, self.num_stages)
        return Action(KINDS[code], stage, microbatch, None if beside == NONE else self.action(beside))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schedule(Sequence[list[Action]]):
    """What every rank does, in order. ``schedule[rank]`` is the rank's list of actions, ``str`` the whole text.

    `slots` [num_ranks, longest list]: the actions by number, `NONE` behind a rank's last one. `beside`, of the same
    shape: the second action of overlapped pairs, `NONE` for all others; None when there are no pairs.
    """

    name: str
    num_microbatches: int
    placement: Placement
    slots: Ints
    beside: Ints | None = None

    @classmethod
    def from_rows(cls, name: str, num_microbatches: int, placement: Placement, rows: Sequence[Row]) -> Schedule:
        """A schedule from one row (see `rows`) per rank."""
        shape = (len(rows), max(map(len, rows)))
        slots = np.full(shape, NONE, Numbering(placement.num_stages, num_microbatches).dtype)
        beside = np.full_like(slots, NONE) if any(row.dtype == PAIRS for row in rows) else None
        for rank, row in enumerate(rows):
            slots[rank, : len(row)], second = split(row)
            if beside is not None and second is not None:
                beside[rank, : len(row)] = second
        return cls(name=name, num_microbatches=num_microbatches, placement=placement, slots=slots, beside=beside)

    @classmethod
    def from_actions(
        cls, name: str, num_microbatches: int, placement: Placement, lists: Sequence[Sequence[Action]]
    ) -> Schedule:
        """A schedule from one list of actions per rank, right or wrong (see `validate`).

        ValueError where a stage or a microbatch does not exist.
        """
        numbering = Numbering(placement.num_stages, num_microbatches)
        return cls.from_rows(name, num_microbatches, placement, [_row(numbering, actions) for actions in lists])

    @property
    def num_ranks(self) -> int:
        """N, the processes that work on it."""
        return len(self.slots)

    @property
    def num_stages(self) -> int:
        """S, the pieces that the model is cut into; a rank may hold several."""
        return self.placement.num_stages

    @property
    def numbering(self) -> Numbering:
        """What the numbers in `slots` mean."""
        return Numbering(self.num_stages, self.num_microbatches)

    @property
    def lengths(self) -> Ints:
        """[N] How many actions each rank has."""
        return np.asarray(np.count_nonzero(self.slots != NONE, axis=1))

    @property
    def columns(self) -> tuple[Ints, ...]:
        """`slots`, and `beside` if there are pairs."""
        return (self.slots,) if self.beside is None else (self.slots, self.beside)

    def actions(self, rank: int) -> list[Action]:
        """What `rank` does, in order."""
        row = self.slots[rank]
        length = int(np.count_nonzero(row != NONE))
        beside = [NONE] * length if self.beside is None else self.beside[rank][:length].tolist()
        return [self.numbering.action(*numbers) for numbers in zip(row[:length].tolist(), beside, strict=True)]

    def rank_of(self, stage: int, microbatch: int = 0) -> int:
        """The rank on which `stage` handles `microbatch`; which microbatch matters for bidirectional schedules only."""
        return self.placement.rank_of(stage, self.placement.direction_of(microbatch, self.num_microbatches))

    def stages_of(self, rank: int) -> list[int]:
        """The stages that `rank` holds, in their order."""
        return self.placement.stages_of(rank)

    def __len__(self) -> int:
        return self.num_ranks

    @overload
    def __getitem__(self, rank: int) -> list[Action]: ...
    @overload
    def __getitem__(self, rank: slice) -> list[list[Action]]: ...
    def __getitem__(self, rank: int | slice) -> list[Action] | list[list[Action]]:
        if isinstance(rank, slice):
            return [self.actions(one) for one in range(*rank.indices(self.num_ranks))]
        if not -self.num_ranks <= rank < self.num_ranks:
            raise IndexError(f"no rank {rank}: the schedule has ranks 0 to {self.num_ranks - 1}")
        return self.actions(rank)

    def __iter__(self) -> Iterator[list[Action]]:
        return (self.actions(rank) for rank in range(self.num_ranks))

    def __str__(self) -> str:
        return "\n".join(f"rank {rank}: {' '.join(map(str, actions))}" for rank, actions in enumerate(self))


def _row(numbering: Numbering, actions: Sequence[Action]) -> Row:
    pairs = [[numbering.slot(part.kind, part.stage, part.microbatch) for part in action.parts] for action in actions]
    slots = np.array([slots[0] for slots in pairs], numbering.dtype)
    if all(len(slots) == 1 for slots in pairs):
        return slots
    return pair(slots, np.array([[*slots, NONE][1] for slots in pairs]))
