"""The timelines of a run: taken out of the results' data, written as Chrome traces, named in the results."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.verdict import Record, Result, Verdict
from reports import gantt, lanes
from reports.timeline import chrome_trace

SUFFIX = ".trace.json"
FOLDER = "traces"
DRAWN = frozenset({Verdict.HANGS, Verdict.CRASHES, Verdict.VIOLATED})  # whose last operations the page draws itself


def separate(record: Record) -> tuple[Record, dict[str, str]]:
    """Return the record with file names instead of ``data["timeline"]``, and the files' texts by name.

    ``data["timeline"]`` is ``{rank: {"operations": [...], "marks": [...]}}``, the ranks as numbers or as texts. Where
    there is none, charts of what ranks do over time (`gantt`) are written, and stay in the data for the page.
    """
    texts: dict[str, str] = {}
    results = tuple(_separate(result, texts) for result in record.results)
    return dataclasses.replace(record, results=results), texts


def remove_old(folder: Path, keep: Mapping[str, str]) -> None:
    """Remove the traces that an earlier run left in the report folder."""
    for path in (folder / FOLDER).glob(f"*{SUFFIX}"):
        if path.name not in keep:
            with contextlib.suppress(OSError):
                path.unlink()


def _separate(result: Result, texts: dict[str, str]) -> Result:
    data = dict(result.data)
    seen: Mapping[Any, Any] = data.pop("timeline", None) or {}
    ranks = {int(rank): parts for rank, parts in seen.items()}
    is_empty = not any(parts.get("operations") or parts.get("marks") for parts in ranks.values())
    charts = gantt.charts(data) if is_empty else {}
    if is_empty and not any(charts.values()):
        return dataclasses.replace(result, data=data)
    name = _free_name(f"{result.claim}-{result.impl}-{result.case}", texts)
    title = f"{result.claim}, {result.impl}, {result.case}: {result.verdict}"
    trace = gantt.chrome_trace(charts, title) if is_empty else chrome_trace(ranks, title)
    if not is_empty and result.verdict in DRAWN:
        data["lanes"] = lanes.kept(ranks)
    texts[name] = json.dumps(trace, ensure_ascii=False, allow_nan=False)
    return dataclasses.replace(result, data=data, timeline=name)


def _free_name(wish: str, taken: Mapping[str, str]) -> str:
    stem = re.sub(r"[^A-Za-z0-9._=-]+", "-", wish).strip("-.")[:120]
    numbered = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(taken) + 2))
    return next(name + SUFFIX for name in numbered if name + SUFFIX not in taken)
