"""The pictures of the page, in the order in which they are shown: which results' data each is drawn from, and how."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from reports import bars, plot
from reports.axes import Kind

Report = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One question that pictures answer; its texts are ``figure.NAME``, ``.about``, ``.x`` and ``.y``."""

    name: str
    plots: tuple[plot.Picture, ...] = ()
    bars: tuple[bars.Picture, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    name: str
    plots: Sequence[str]
    shape: plot.Shape


_KINDS = (
    _Kind(name="bytes", plots=("ring-bytes", "tree-bytes"), shape=plot.Shape(y=Kind.BYTES)),
    _Kind(name="divergence", plots=("spread",), shape=plot.Shape()),
    _Kind(name="crossover", plots=("ring-time", "tree-time"), shape=plot.Shape(x=Kind.LOG, y=Kind.LOG, straight=True)),
    _Kind(name="bubble", plots=("bubble-share",), shape=plot.Shape(y=Kind.SHARE)),
)


def figures(report: Report) -> list[Figure]:
    """All pictures that the report's results have data for."""
    found = [Figure(name=kind.name, plots=tuple(plot.pictures(report, kind.plots, kind.shape))) for kind in _KINDS]
    found.insert(3, Figure(name="memory", bars=tuple(bars.pictures(report))))
    return [figure for figure in found if figure.plots or figure.bars]
