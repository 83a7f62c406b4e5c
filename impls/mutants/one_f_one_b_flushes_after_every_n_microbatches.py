"""The pipeline runs empty after every N microbatches: each time the bubble comes again."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.1f1b.same-bubble", "pipeline.bubble-growth.1f1b")


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """1F1B over N microbatches, and over the next N."""
    right.one_f_one_b(num_stages, num_microbatches)
    rows: list[list[Action]] = [[] for _ in range(num_stages)]
    for first in range(0, num_microbatches, num_stages):
        part = right.one_f_one_b(num_stages, min(num_stages, num_microbatches - first))
        for row, actions in zip(rows, part, strict=True):
            row += [Action(action.kind, action.stage, action.microbatch + first) for action in actions]
    return rows
