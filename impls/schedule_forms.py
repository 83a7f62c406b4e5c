"""Whatever form a schedule is returned in, made one of ours: for each rank the ordered list of its actions.

    one list per rank          also a dict by rank, generators, a text "F0 F1 B0", torch's tables with None for idling
    one flat list              of (cycle, stage, microbatch, phase): ordered by cycle, dealt out by stage
    one list per clock tick    what all ranks do in that tick; of GPipe also the pairs of `clock_cycles`

Which rank has which stage follows from who runs it; only where no rank is named, from the name of the schedule.
What an entry may look like is in `action_forms`. A schedule that is read need not be right: see `validate`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from impls.action_forms import EXAMPLES, Part, Said, Unreadable, is_entry, number, read_entry, shown
from impls.clock_cycles import are_cycles, completed
from impls.reference.pipeline.actions import Action, Kind, Schedule
from impls.schedule_owners import as_in_the_papers, placement_of

_V = ("zbv", "dualpipev")  # rank r has the stages r and 2N-1-r
_OVERLAPPED = ("dualpipe", "dualpipev")  # a forward and a backward in the same cycle are one action
_ZERO_BUBBLE = ("zb_h1", "zb_h2", "zbv")
_MAX_CHUNKS = 64  # stages on a rank
_MAX_AT_ONCE = 2  # actions of one rank in a clock tick: a forward and a backward

_Rows = list[list[tuple[str, Said]]]  # for each rank its entries, each with its place in words


class ScheduleError(ValueError):
    """What was returned cannot be read as a schedule: where in it, and what stood there."""


def read_schedule(value: Any, name: str, num_ranks: int, num_microbatches: int) -> Schedule:
    """The schedule `name` of N ranks and M microbatches that `value` says, right or wrong.

    ScheduleError where something in it is no action, has no rank, or is of a microbatch that there is not.
    """
    reader = _Reader(name, num_ranks, num_microbatches)
    rows = reader.rows(value)
    lists = [reader.actions(rank, row) for rank, row in enumerate(rows)]
    if not any(lists):
        raise ScheduleError(f"{reader.title} has no actions: expected {num_ranks} lists, one for each rank. {EXAMPLES}")
    if name in _ZERO_BUBBLE:
        lists = as_in_the_papers(lists)
    return Schedule.from_actions(name, num_microbatches, placement_of(lists, num_microbatches), lists)


class _Reader:
    def __init__(self, name: str, num_ranks: int, num_microbatches: int) -> None:
        self.name = name
        self.num_ranks = num_ranks
        self.num_microbatches = num_microbatches
        self.title = f"{name}({num_ranks}, {num_microbatches})"
        self._most = 1000 + 200 * (num_ranks + num_microbatches)  # entries in a list: an endless generator has more

    # -- lists of entries --------------------------------------------------------------------------------------------

    def rows(self, value: Any) -> _Rows:
        """The entries of each rank, in order."""
        if callable(value) and not isinstance(value, Iterable):
            value = [value(rank) for rank in range(self.num_ranks)]
        items = (
            self._by_rank(value) if isinstance(value, Mapping) else self._listed(value, "it", max(self.num_ranks, 1))
        )
        if self.name == "gpipe" and are_cycles(items):
            return self._ticks(completed(items))
        if items and all(map(is_entry, items)):
            return self._dealt_out([(f"entry {place}", item) for place, item in enumerate(items)])
        if len(items) == self.num_ranks:
            return [self._row(rank, item) for rank, item in enumerate(items)]
        if len(items) > self.num_ranks:
            return self._ticks(items)
        raise ScheduleError(
            f"{self.title} returned {len(items)} lists: expected {self.num_ranks}, one for each rank, "
            "or one flat list of (cycle, stage, microbatch, phase)"
        )

    def _row(self, rank: int, item: Any) -> list[tuple[str, Said]]:
        row = self._listed(item() if callable(item) else item, f"the list of rank {rank}")
        said = [self._said(f"rank {rank}, entry {place}", entry) for place, entry in enumerate(row)]
        return _by_cycle(said)

    def _by_rank(self, value: Mapping[Any, Any]) -> list[Any]:
        try:
            keyed = {number(int(key) if isinstance(key, str) else key, "rank"): item for key, item in value.items()}
        except ValueError:
            keyed = {}
        if sorted(keyed) != list(range(self.num_ranks)):
            raise ScheduleError(
                f"{self.title} returned a dict with the keys {shown(list(value))}: expected the ranks "
                f"0 to {self.num_ranks - 1}"
            )
        return [keyed[rank] for rank in range(self.num_ranks)]

    def _listed(self, value: Any, where: str, times: int = 1) -> list[Any]:
        """`value` as a list, for texts their words; ScheduleError if there is no end to it."""
        if isinstance(value, str):
            return value.split()
        if not isinstance(value, Iterable):
            raise ScheduleError(f"{self.title}: {where} is {shown(value)}, not a list of actions. {EXAMPLES}")
        found = list(itertools.islice(value, self._most * times + 1))
        if len(found) > self._most * times:
            raise ScheduleError(f"{self.title}: {where} has more than {self._most * times} entries, or no end")
        return found

    def _said(self, where: str, entry: Any) -> tuple[str, Said]:
        try:
            return where, read_entry(entry)
        except Unreadable as error:
            raise ScheduleError(f"{self.title}, {where}: {error}") from None

    # -- where no rank is named --------------------------------------------------------------------------------------

    def _dealt_out(self, entries: Sequence[tuple[str, Any]]) -> _Rows:
        """A flat list: each entry to the rank that has its stage."""
        rows: _Rows = [[] for _ in range(self.num_ranks)]
        for where, said in _by_cycle([self._said(where, entry) for where, entry in entries]):
            if said.parts:
                rows[self._rank_of(where, said)].append((where, said))
        return rows

    def _ticks(self, items: Sequence[Any]) -> _Rows:
        """One list per clock tick, of actions with their stages, or with a column for each rank."""
        ticks = [self._listed(item, f"list {place}") for place, item in enumerate(items)]
        in_columns = all(len(tick) == self.num_ranks for tick in ticks) and any(None in tick for tick in ticks)
        rows: _Rows = [[] for _ in range(self.num_ranks)]
        for place, tick in enumerate(ticks):
            said = [self._said(f"list {place}, entry {column}", entry) for column, entry in enumerate(tick)]
            ranks = [
                column if in_columns else self._rank_of(*each) for column, each in enumerate(said) if each[1].parts
            ]
            crowded = [rank for rank, count in Counter(ranks).items() if count > _MAX_AT_ONCE]
            if crowded:
                raise ScheduleError(
                    f"{self.title} returned {len(items)} lists: expected {self.num_ranks}, one for each rank. As clock "
                    f"ticks they cannot be meant, rank {crowded[0]} would do too much at once in list {place}"
                )
            for rank, (where, each) in zip(ranks, [each for each in said if each[1].parts], strict=True):
                rows[rank].append((where, dataclasses.replace(each, cycle=place)))
        return rows

    def _rank_of(self, where: str, said: Said) -> int:
        rank = said.rank
        if rank is None:
            part = said.parts[0]
            rank = -1 if part.stage is None else self._holder(part.stage, part.microbatch)
        if not 0 <= rank < self.num_ranks:
            raise ScheduleError(
                f"{self.title}, {where}: no rank follows from {_told(said)}. Return one list for each rank, or name "
                "stages that there are"
            )
        return rank

    def _holder(self, stage: int, microbatch: int) -> int:
        """The rank that has `stage` in the schedule of this name; -1 for none."""
        last = self.num_ranks - 1
        if self.name in _V:
            return stage if stage <= last else 2 * last + 1 - stage
        if self.name == "interleaved_1f1b":
            return stage % self.num_ranks
        return last - stage if self.name == "dualpipe" and 2 * microbatch >= self.num_microbatches else stage

    # -- actions -----------------------------------------------------------------------------------------------------

    def actions(self, rank: int, row: Iterable[tuple[str, Said]]) -> list[Action]:
        """A rank's actions, with their stages; ScheduleError for numbers that there are not."""
        found = []
        for where, said in _at_once(row) if self.name in _OVERLAPPED else row:
            parts = [self._action(rank, where, said, part) for part in said.parts]
            if parts:
                beside = parts[1] if len(parts) > 1 else None
                found.append(Action(parts[0].kind, parts[0].stage, parts[0].microbatch, beside))
        return found

    def _action(self, rank: int, where: str, said: Said, part: Part) -> Action:
        stage = rank if part.stage is None else part.stage
        if part.stage is None and self.name in (*_V, "dualpipe", "interleaved_1f1b") and self.num_ranks > 1:
            raise ScheduleError(
                f"{self.title}, {where}: {_told(said)} does not say which of the rank's stages. {EXAMPLES}"
            )
        if not 0 <= part.microbatch < self.num_microbatches:
            raise ScheduleError(
                f"{self.title}, {where}: {_told(said)} is of microbatch {part.microbatch}, and there are 0 to "
                f"{self.num_microbatches - 1}. Of two numbers the first is the stage"
            )
        if not 0 <= stage < _MAX_CHUNKS * self.num_ranks:
            raise ScheduleError(f"{self.title}, {where}: {_told(said)} is of stage {stage}, which there is not")
        return Action(part.kind, stage, part.microbatch)


def _by_cycle(row: list[tuple[str, Said]]) -> list[tuple[str, Said]]:
    """In the order of the cycles where all entries have one, else as they stand."""
    if not all(said.cycle is not None for _, said in row if said.parts):
        return row
    return sorted(row, key=lambda each: (each[1].cycle is not None, each[1].cycle))


def _at_once(row: Iterable[tuple[str, Said]]) -> Iterator[tuple[str, Said]]:
    """With what a rank does in one and the same cycle as an overlapped pair."""
    for _, group in itertools.groupby(enumerate(row), key=lambda each: _cycle_or(each[1][1], each[0])):
        entries = [entry for _, entry in group if entry[1].parts]
        parts = tuple(part for _, said in entries for part in said.parts)
        kinds = [part.kind for part in parts]
        if len(entries) == len(parts) == 2 and kinds.count(Kind.FORWARD) == 1 and Kind.WEIGHT not in kinds:
            parts = parts if kinds[0] is Kind.FORWARD else parts[::-1]
            entries = [(entries[0][0], Said(parts))]
        yield from entries


def _cycle_or(said: Said, place: int) -> tuple[bool, Any]:
    return (True, said.cycle) if said.cycle is not None else (False, place)


def _told(said: Said) -> str:
    return "&".join(
        f"{part.kind}{'' if part.stage is None else f'{part.stage}.'}{part.microbatch}" for part in said.parts
    )
