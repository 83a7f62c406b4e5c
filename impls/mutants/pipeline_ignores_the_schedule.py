"""Pipeline: whatever is asked for, 1F1B runs."""

from __future__ import annotations

from impls.mutants import _pipelines
from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.names import named

BREAKS = ("pipeline.order", "pipeline.zb.split")


def change(name: str, schedule: Schedule) -> Schedule:
    """1F1B, where each rank has one stage."""
    one_each = schedule.num_stages == schedule.num_ranks and name != "dualpipe"
    return named("1f1b", schedule.num_ranks, schedule.num_microbatches) if one_each else schedule


train_step = _pipelines.with_schedule(change)
