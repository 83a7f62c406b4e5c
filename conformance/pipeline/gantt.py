"""What ranks do over time as data for the report: a chart for each simulated or executed schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from impls.reference.pipeline.simulate import Timeline

Row = tuple[int, str, int, int, float, float]  # rank, kind, stage, microbatch, begin, end
Charts = dict[str, Any]


def charts(**by_label: Timeline | Iterable[Row]) -> Charts:
    """Evidence data with a chart for each keyword: ``data=charts(simulated=timeline, executed=rows)``.

    Times of simulated charts are in units of the costs; those of others are the caller's, from 0.
    """
    found = []
    for label, chart in by_label.items():
        rows = simulated(chart) if isinstance(chart, Timeline) else chart
        found.append({"label": label.replace("_", " "), "cells": [list(row) for row in rows]})
    return {"gantt": found}


def simulated(timeline: Timeline) -> list[Row]:
    """The actions of all ranks; both of an overlapped pair have the same times."""
    return [
        (rank, part.kind.value, part.stage, part.microbatch, float(begin), float(end))
        for rank in range(timeline.schedule.num_ranks)
        for action, begin, end in timeline.spans(rank)
        for part in action.parts
    ]
