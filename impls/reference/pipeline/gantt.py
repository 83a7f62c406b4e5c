"""Schedules as text: `chart`, what every rank does over time, and `lists`, what it does in which order.

rank 0  F0 F1 .. .. .. B0    B1
rank 1  .. F0 B0    F1 B1    ..
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

from impls.reference.pipeline.actions import Action, Schedule
from impls.reference.pipeline.simulate import Timeline
from impls.words import number_of

Place = tuple[int, int]  # a rank, and a position in its list
_RANKS, _POSITIONS = 16, 20  # as many are shown of a larger schedule
_IDLE = "."


def chart(timeline: Timeline, width: int = 200) -> str:
    """What every rank does over time, at most `width` columns wide; labels are cut short where there is no room.

    If there is room for all, the shortest action is as wide as the longest label and a space.
    """
    count = timeline.schedule.num_ranks
    ranks = _window([], count, _RANKS)
    bars = drawn(timeline, ranks, width - len(_title(0, ranks)))
    lines = [(_title(rank, ranks) + bar).rstrip() for rank, bar in zip(ranks, bars, strict=True)]
    return "\n".join([_heading(timeline), *lines, *_left_out(ranks, count), *legend(timeline.schedule)])


def drawn(timeline: Timeline, ranks: Iterable[int], room: int) -> list[str]:
    """What each of `ranks` does from 0 to the makespan, all equally long and at most `room` columns; idle is dots."""
    rows = [_labelled(timeline, rank) for rank in ranks]
    spans = [span for row in rows for span in row]
    shortest = min((end - begin for _, begin, end in spans if end > begin), default=Fraction(1))
    longest_label = max((len(text) for text, _, _ in spans), default=1)
    end = Fraction(timeline.makespan) or Fraction(1)
    per_shortest = min(Fraction(longest_label + 1), room * shortest / end)
    per_time = (math.floor(per_shortest) or per_shortest) / shortest  # whole columns, unless they are too many
    bars = []
    for row in rows:
        bar = ""
        for text, begin, stop in row:
            first, last = math.floor(begin * per_time), math.floor(stop * per_time)
            bar = bar.ljust(first, _IDLE) + text[: last - first].ljust(last - first)
        bars.append(bar.ljust(math.floor(end * per_time), _IDLE))
    return bars


def _labelled(timeline: Timeline, rank: int) -> list[tuple[str, Fraction, Fraction]]:
    stages = timeline.schedule.stages_of(rank)
    spans = timeline.spans(rank)
    return [(label(action, stages), Fraction(begin), Fraction(end)) for action, begin, end in spans]


def label(action: Action, stages: Sequence[int]) -> str:
    """An action in short for a rank that holds `stages`: F3, on its second stage f3, and on others F7.3 as ever."""
    texts = []
    for part in action.parts:
        if part.stage not in stages[:2] or len(stages) > 2:
            texts.append(str(part))
        else:
            texts.append(f"{part.kind.lower() if part.stage in stages[1:2] else part.kind}{part.microbatch}")
    return "".join(texts)


def _heading(timeline: Timeline) -> str:
    schedule, idle = timeline.schedule, timeline.bubble()
    low, high = float(min(idle)), float(max(idle))
    return (
        f"{schedule.name}: {number_of(schedule.num_ranks, 'rank')}, "
        f"{number_of(schedule.num_microbatches, 'microbatch')}, makespan "
        f"{float(timeline.makespan):g}; idle {low:g}{'' if low == high else f' to {high:g}'} per rank, "
        f"{float(timeline.bubble_share()):.1%} of the total time"
    )


def legend(schedule: Schedule) -> list[str]:
    """What the letters of a chart mean."""
    kinds = "F forward, B backward, I and W its halves (input, weights), the number is the microbatch; .. idle"
    small = "; small letters: the second stage of the rank" if len(schedule.stages_of(0)) == 2 else ""
    pairs = "; F5b1: both overlap" if schedule.beside is not None else ""
    return [kinds + small + pairs]


def lists(schedule: Schedule, marked: Collection[Place] = ()) -> str:
    """What every rank does in order, `marked` places between > and <; of a large schedule what is around these.

    A mark behind the last action of a rank shows that one is missing.
    """
    ranks = _window([rank for rank, _ in marked], schedule.num_ranks, _RANKS)
    longest = schedule.slots.shape[1] + 1
    positions = _window([position for _, position in marked], longest, _POSITIONS)
    table = [_cells(schedule[rank], rank, positions, marked) for rank in ranks]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    before, behind = "... " if positions[0] else "", " ..." if positions[-1] + 1 < longest else ""
    lines = []
    for rank, row in zip(ranks, table, strict=True):
        cells = " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append((_title(rank, ranks) + before + cells + behind).rstrip())
    return "\n".join([*lines, *_left_out(ranks, schedule.num_ranks)])


def _cells(actions: Sequence[Action], rank: int, positions: range, marked: Collection[Place]) -> list[str]:
    texts = [str(actions[at]) if at < len(actions) else "" for at in positions]
    return [f">{text}<" if (rank, at) in marked else text for text, at in zip(texts, positions, strict=True)]


def _window(places: Sequence[int], count: int, shown: int) -> range:
    """`shown` consecutive numbers below `count`, from a little before the first of `places`; or all of them."""
    first = max(0, min(min(places, default=0) - shown // 4, count - shown))
    return range(first, min(first + shown, count))


def _title(rank: int, ranks: range) -> str:
    return f"rank {rank:<{len(str(ranks[-1]))}}  "


def _left_out(ranks: range, count: int) -> list[str]:
    return [] if len(ranks) == count else [f"({count - len(ranks)} more of {number_of(count, 'rank')})"]
