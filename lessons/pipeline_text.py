"""Lesson 79 as text: the Gantt chart, its bubble, and what every rank idles and holds. Pure text, no processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from impls.reference.pipeline.counts import copies, paired_share, peak_activations
from impls.reference.pipeline.gantt import drawn, legend
from impls.reference.pipeline.simulate import ShareOf, Timeline
from impls.reference.pipeline.validate import faults
from impls.words import number_of
from lessons.pipeline_observed import Observed

MOST_RANKS = 16  # rows of a chart, and of the table below it
MOST_COLUMNS = 4000  # of a chart before it is cut
NEGLIGIBLE = 5e-4  # a bubble function is right when it gives what is printed of the chart, a tenth of a percent


def told(seen: Observed, timeline: Timeline, width: int | None = None, *, usual: bool = True) -> Iterator[str]:
    """The whole lesson about one schedule, line by line. `width`: columns of the terminal, None for no limit.

    `usual`: the costs are those for which bubble functions are.
    """
    yield heading(seen)
    yield ""
    yield from chart(timeline, width)
    yield ""
    yield from bubble(seen, timeline, usual=usual)
    yield ""
    yield from table(timeline)


def heading(seen: Observed) -> str:
    """Which schedule of whom this is."""
    whose = seen.impl if seen.own else f"the reference ({seen.impl} does not provide it)"
    sizes = f"{number_of(seen.num_stages, 'rank')}, {number_of(seen.num_microbatches, 'microbatch')}"
    return f"{seen.name} of {whose}: {sizes}"


def chart(timeline: Timeline, width: int | None = None) -> Iterator[str]:
    """What the ranks do over time, a row for each, between its title and a bar; cut behind `width` columns."""
    count = timeline.schedule.num_ranks
    ranks = range(min(count, MOST_RANKS))
    bars = drawn(timeline, ranks, MOST_COLUMNS)
    titles = [f"rank {rank:<{len(str(ranks[-1]))}}  " for rank in ranks]
    yield from framed(titles, bars, width)
    if count > len(ranks):
        yield f"({count - len(ranks)} more of {number_of(count, 'rank')})"
    yield from legend(timeline.schedule)


def framed(titles: Sequence[str], bars: Sequence[str], width: int | None) -> Iterator[str]:
    """Rows with a bar behind them; cut, with a note, where they are wider than `width`."""
    room = max(map(len, bars)) if width is None else width - len(titles[0]) - 1
    cut = room < max(map(len, bars))
    for title, bar in zip(titles, bars, strict=True):
        yield title + (f"{bar[: max(0, room)]}>" if cut else f"{bar}|")
    if cut:
        yield f"(cut: {max(0, room)} of {len(bars[0])} columns are shown; --width=0 or --svg PATH shows all)"


def bubble(seen: Observed, timeline: Timeline, *, usual: bool = True) -> Iterator[str]:
    """Idle time as a share: what the implementation's function says, and what the chart shows."""
    idle, busy = sum(timeline.bubble()), sum(timeline.busy)
    if seen.bubble is not None and usual:
        yield f"bubble: {percent(seen.bubble)} of the total time, by {seen.bubble_call} of {seen.impl}"
    yield (
        f"bubble: {percent(timeline.bubble_share())} of the total time in this chart: idle for {number(idle)} of "
        f"{number(idle + busy)}; {percent(timeline.bubble_share(ShareOf.IDEAL))} of the time without idling"
    )


def table(timeline: Timeline) -> Iterator[str]:
    """What each rank idles and holds, and how many copies of the model there are."""
    schedule, idle = timeline.schedule, timeline.bubble()
    peaks, paired = peak_activations(schedule), paired_share(schedule)
    rows = [["rank", "stages", "idle", "of its time", "peak activations", "paired"]]
    for rank in range(min(schedule.num_ranks, MOST_RANKS)):
        share = idle[rank] / timeline.makespan if timeline.makespan else 0
        stages = ", ".join(map(str, schedule.stages_of(rank)))
        rows.append([str(rank), stages, number(idle[rank]), percent(share), number(peaks[rank]), percent(paired[rank])])
    yield from aligned(rows)
    yield ""
    yield f"copies of the model: {number(max(copies(schedule)))}"
    yield "peak activations: microbatches at a time, on 1/N of the model; paired: forwards and backwards that overlap"


def troubles(seen: Observed, timeline: Timeline | None, *, usual: bool = True) -> Iterator[str]:
    """What is wrong with the schedule, or with the figure beside it."""
    if seen.trouble:
        yield f"{seen.name} of {seen.impl}: {seen.trouble}"
    if seen.schedule is not None:
        found = faults(seen.schedule)
        yield from (f"{fault.kind}: {fault.text}. See: pytest --claim=pipeline" for fault in found)
        if found:
            return
    if timeline is not None and seen.bubble is not None and usual:
        share = float(timeline.bubble_share())
        if not abs(share - seen.bubble) <= NEGLIGIBLE:  # also NaN
            yield (
                f"{seen.bubble_call} is {percent(seen.bubble)}, and the chart idles for {percent(share)} of the total "
                f"time ({percent(timeline.bubble_share(ShareOf.IDEAL))} of the time without idling). "
                "See: pytest --claim=lessons.79"
            )


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns of texts, all to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))


def percent(share: Any) -> str:
    """A share as people write it."""
    return f"{float(share):.1%}".replace("%", " %")


def number(value: Any) -> str:
    """A time or a count, whole where it is."""
    return f"{float(value):g}"
