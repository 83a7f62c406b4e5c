"""Pipeline: what is asked for as DualPipeV runs as ZBV, on the same stages."""

from __future__ import annotations

from impls.mutants import _pipelines
from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.names import named

BREAKS = ("pipeline.order",)


def change(name: str, schedule: Schedule) -> Schedule:
    """ZBV for DualPipeV, which needs more microbatches still."""
    return named("zbv", schedule.num_ranks, schedule.num_microbatches) if name == "dualpipev" else schedule


train_step = _pipelines.with_schedule(change)
