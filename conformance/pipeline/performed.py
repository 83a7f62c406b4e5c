"""One step of an implementation's pipeline as it was seen on ranks: in which order, when, and idle how long."""

from __future__ import annotations

import dataclasses
from typing import Any

from conformance.checks import Judge, Subject
from conformance.pipeline import executed, observed, offered
from conformance.pipeline.case import SEVERAL, placement
from conformance.pipeline.gantt import Charts, charts
from conformance.pipeline.idle import percent, timeline
from conformance.pipeline.observed import Event
from impls.reference.pipeline import Action, Schedule
from impls.reference.pipeline.names import named
from impls.words import number_of
from lessons.pipeline_cells import Cell, idle_share, measured
from lessons.pipeline_work import Moment

UNIT_S = 0.01  # what a forward of 1/N of the model takes; each half of its backward takes as long
DEADLINE_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """What every rank did under `schedule`; `name` is what was asked for, empty for an order of its own."""

    schedule: str
    count: int  # microbatches
    unit_s: float
    name: str
    lists: list[list[Action]]
    moments: list[list[Moment]]
    recomputed: int = 0  # forwards that were done again directly before their own backward, on all ranks

    @property
    def cells(self) -> list[Cell]:
        """The work of all ranks, in ms."""
        places = placement(self.schedule, len(self.lists))
        order = Schedule.from_actions(self.schedule, self.count, places, self.lists)
        return measured(self.moments, order, unit_s=1e-3, joined=0.3e3 * self.unit_s)

    @property
    def idle_share(self) -> float:
        """Of the time of all ranks, as measured."""
        return idle_share(self.cells, len(self.lists))

    @property
    def oversleep(self) -> float:
        """How much longer than asked the work took at the median: what this machine does by itself."""
        took_s = sorted((ended - began) / 1e9 for rank in self.moments for *_, began, ended in rank)
        places = placement(self.schedule, len(self.lists))
        return took_s[len(took_s) // 2] * places.num_stages / (len(self.lists) * self.unit_s) - 1

    @property
    def model(self) -> Schedule:
        """The schedule of this name, written by the book."""
        return named(self.schedule, len(self.lists), self.count, SEVERAL.get(self.schedule, 1))

    @property
    def model_share(self) -> float:
        """Of the time of all ranks, as the model's ranks idle."""
        return float(timeline(self.model).bubble_share())

    @property
    def plain(self) -> Schedule:
        """1F1B of the same sizes: what every schedule idles less than, or as long."""
        return named("1f1b", len(self.lists), self.count, 1)

    @property
    def told(self) -> str:
        """The measured idle share beside the model's."""
        again = number_of(self.recomputed, "recomputed forward")
        done = f"; {again}, each directly before the backward of its own microbatch" if self.recomputed else ""
        called = self.schedule if self.name else "its one order"
        return (
            f"{called} on {len(self.lists)} ranks, M = {self.count}, F = I = W = {self.unit_s * 1e3:g} ms: "
            f"measured idle share {percent(self.idle_share)}, model {percent(self.model_share)}{done}"
        )

    @property
    def charts(self) -> Charts:
        """What was measured, above what the model says."""
        return charts(executed_as_measured_in_ms=self.cells, simulated=timeline(self.model))


def perform(
    subject: Subject,
    judge: Judge,
    schedule: str,
    world_size: int,
    count: int,
    unit_s: float = UNIT_S,
    *,
    warm: bool = False,
) -> Performed:
    """Run one step, the second of two where `warm`. The report draws the trace."""
    arguments = (schedule, count, unit_s, warm)
    outcomes = offered.run(subject, observed.order, world_size, *arguments, deadline_s=DEADLINE_S)
    reports: list[dict[str, Any]] = outcomes.values
    judge.timeline(outcomes)
    found, recomputed = [], 0
    for outcome, report in zip(outcomes, reports, strict=True):
        events = [Event(*event) for event in report["events"]]
        issued = [op.issued_ns for op in outcome.operations]
        found.append(executed.actions(events, issued, splits=schedule not in executed.WHOLE))
        recomputed += executed.recomputed(events)
    return Performed(
        schedule=schedule,
        count=count,
        unit_s=unit_s,
        name=reports[0]["schedule"],
        lists=found,
        moments=[report["moments"] for report in reports],
        recomputed=recomputed,
    )
