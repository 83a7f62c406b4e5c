"""Boards of several ranks in one process, filled by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fixtures.witness.board import Board, RankBoard
from fixtures.witness.waits import WaitGraph
from fixtures.world.outcome import Operation


def operation(kind: str, ranks: Sequence[int], **fields: Any) -> Operation:
    """An operation on 8 floats of the group ``default``, unless ``fields`` say otherwise."""
    usual: dict[str, Any] = {"group": "default", "dtype": "float32", "shape": (8,), "num_bytes": 32}
    return Operation(**{"seq": 0, "group_seq": 0, "kind": kind, "ranks": tuple(ranks), **usual, **fields})


class Boards:
    """The rank sides of one board, and the graph that the parent sees."""

    def __init__(self, folder: Path, world_size: int) -> None:
        self.board = Board.create(folder / "board", world_size)
        self.ranks: list[RankBoard] = [Board.attach(folder / "board", rank) for rank in range(world_size)]
        self.all = tuple(range(world_size))
        self._indices = iter(range(1_000_000))
        for rank in self.ranks:
            rank.program(1)

    def issue(self, rank: int, kind: str, *, waits: bool = False, ends: bool = False, **fields: Any) -> int:
        """One operation of one rank, as the trace would tell it."""
        index = next(self._indices)
        self.ranks[rank].issued(index, operation(kind, fields.pop("ranks", self.all), **fields))
        if waits:
            self.ranks[rank].waiting(index)
        if ends:
            self.ranks[rank].done(index)
        return index

    def graph(self) -> WaitGraph:
        """What the parent makes of the board now."""
        histories = [{(call.key, call.index): call for call in self.board.recent(rank)} for rank in self.all]
        return WaitGraph([self.board.view(rank) for rank in self.all], histories.__getitem__)
