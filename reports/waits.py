"""Who waits for whom, as a drawing: the ranks on a circle, an arrow from each that waits to each that holds it up."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

SIZE = 200.0
_RADIUS = 70.0  # of the circle on which the ranks lie
_NODE = 15.0
_HEAD = 7.0  # of an arrow
_ASIDE = 3.5  # two that wait for each other have an arrow each


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One rank: where it lies and what it does (``held``, ``blamed`` or ``free``)."""

    rank: int
    x: float
    y: float
    kind: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """From the rim of one rank to that of another, as SVG paths."""

    line: str
    head: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """All that the template draws; ``words`` says the same for whoever does not see it."""

    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    words: str


def drawing(waiting: dict[str, Any]) -> Drawing:
    """The drawing for ``waiting`` of a story in report.json."""
    edges = [(int(rank), int(peer)) for rank, peer in waiting["edges"]]
    places = [_place(rank, waiting["num_ranks"]) for rank in range(waiting["num_ranks"])]
    nodes = tuple(
        Node(rank=rank, x=round(x, 1), y=round(y, 1), kind=_kind(rank, edges, waiting["blamed"]))
        for rank, (x, y) in enumerate(places)
    )
    by_rank = {rank: [peer for other, peer in edges if other == rank] for rank, _ in edges}
    words = "; ".join(f"{rank} → {', '.join(map(str, peers))}" for rank, peers in by_rank.items())
    return Drawing(nodes=nodes, arrows=tuple(_arrow(places[a], places[b]) for a, b in edges), words=words)


def _place(rank: int, num_ranks: int) -> tuple[float, float]:
    angle = 2 * math.pi * rank / num_ranks - math.pi / 2
    return SIZE / 2 + _RADIUS * math.cos(angle), SIZE / 2 + _RADIUS * math.sin(angle)


def _kind(rank: int, edges: list[tuple[int, int]], blamed: list[int]) -> str:
    if rank in blamed:
        return "blamed"
    return "held" if any(rank == waiter for waiter, _ in edges) else "free"


def _arrow(begin: tuple[float, float], end: tuple[float, float]) -> Arrow:
    across, down = end[0] - begin[0], end[1] - begin[1]
    length = math.hypot(across, down) or 1.0
    ux, uy = across / length, down / length
    x1, y1 = begin[0] + ux * _NODE - uy * _ASIDE, begin[1] + uy * _NODE + ux * _ASIDE
    x2, y2 = end[0] - ux * (_NODE + 2) - uy * _ASIDE, end[1] - uy * (_NODE + 2) + ux * _ASIDE
    neck = x2 - ux * _HEAD, y2 - uy * _HEAD
    left = neck[0] - uy * _HEAD / 2, neck[1] + ux * _HEAD / 2
    right = neck[0] + uy * _HEAD / 2, neck[1] - ux * _HEAD / 2
    return Arrow(
        line=f"M{x1:.1f} {y1:.1f}L{neck[0]:.1f} {neck[1]:.1f}",
        head=f"M{x2:.1f} {y2:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}Z",
    )
