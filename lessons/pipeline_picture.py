"""Lesson 79 as a picture and as a Chrome trace: what every rank does over time, simulated and executed alike."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from impls.reference.pipeline.actions import Kind
from lessons.pipeline_cells import Cell

# Told apart by hatches as well as by colours.
LOOKS = {
    Kind.FORWARD: ("#8fb4e8", "", "forward"),
    Kind.BACKWARD: ("#e8b06a", "//", "backward"),
    Kind.INPUT: ("#e8b06a", "..", "gradient of the input"),
    Kind.WEIGHT: ("#8fcfa8", "xx", "gradients of the weights"),
}
LABELLED = 600  # actions at most; more labels than these cannot be read
MICROSECONDS = 1000.0  # for one unit of cost in a trace


def draw(charts: Mapping[str, Sequence[Cell]], path: Path) -> None:
    """Write the charts below each other, in the format of the path's ending."""
    ranks = max(cell.rank for chart in charts.values() for cell in chart) + 1
    figure = Figure(figsize=(14, len(charts) * (1.2 + 0.45 * ranks)), layout="constrained")
    panels = figure.subplots(len(charts), 1, squeeze=False, sharex=True)[:, 0]
    for panel, (title, chart) in zip(panels, charts.items(), strict=True):
        _panel(panel, chart)
        panel.set(title=title, xlabel="time")
        panel.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
        panel.invert_yaxis()
    used = {cell.kind for chart in charts.values() for cell in chart}
    looks = [
        Patch(facecolor=c, hatch=h, edgecolor="0.25", label=t) for kind, (c, h, t) in LOOKS.items() if kind in used
    ]
    figure.legend(handles=looks, loc="outside lower center", ncols=len(looks))
    figure.savefig(path)


def _panel(panel: Any, chart: Sequence[Cell]) -> None:
    together: dict[tuple[int, float], list[Cell]] = {}
    for cell in chart:
        together.setdefault((cell.rank, cell.begin), []).append(cell)
    for (rank, begin), parts in together.items():
        for place, cell in enumerate(parts):  # a pair shares the row
            height = 0.84 / len(parts)
            color, hatch, _ = LOOKS[cell.kind]
            low = rank - 0.42 + place * height
            span = [(begin, cell.end - begin)]
            panel.broken_barh(span, (low, height), facecolor=color, hatch=hatch, edgecolor="0.25", linewidth=0.6)
            if len(chart) <= LABELLED:
                middle = (begin + cell.end) / 2, low + height / 2
                panel.text(*middle, str(cell.microbatch), ha="center", va="center", fontsize=7)


def write_trace(charts: Mapping[str, Sequence[Cell]], path: Path) -> None:
    """Write a Chrome trace: a process for each rank, a track for each chart."""
    events: list[dict[str, Any]] = []
    for track, (title, chart) in enumerate(charts.items()):
        for rank in sorted({cell.rank for cell in chart}):
            names = {"process_name": f"rank {rank}", "thread_name": title}
            events += [{"ph": "M", "pid": rank, "tid": track, "name": k, "args": {"name": v}} for k, v in names.items()]
        for cell in chart:
            times = {"ts": cell.begin * MICROSECONDS, "dur": (cell.end - cell.begin) * MICROSECONDS}
            args = {"stage": cell.stage, "microbatch": cell.microbatch}
            where = {"pid": cell.rank, "tid": track}
            events.append({"ph": "X", "name": cell.label, "cat": cell.kind.value, **where, **times, "args": args})
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"suite": "Lockstep"}})
    path.write_text(text, encoding="utf-8")
