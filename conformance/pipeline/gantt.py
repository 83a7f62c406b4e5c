"""What ranks do over time as data for the report: a chart for each simulated or executed schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from impls.reference.pipeline.simulate import Timeline
from lessons.pipeline_cells import Cell, simulated

Charts = dict[str, Any]


def charts(**by_label: Timeline | Iterable[Cell]) -> Charts:
    """Evidence data with a chart for each keyword: ``data=charts(simulated=timeline, executed=cells)``.

    Times of simulated charts are in units of the costs; those of others are the caller's, from 0.
    """
    found = []
    for label, chart in by_label.items():
        cells = simulated(chart) if isinstance(chart, Timeline) else chart
        rows = [[cell.rank, cell.kind.value, cell.stage, cell.microbatch, cell.begin, cell.end] for cell in cells]
        found.append({"label": label.replace("_", " "), "cells": rows})
    return {"gantt": found}
