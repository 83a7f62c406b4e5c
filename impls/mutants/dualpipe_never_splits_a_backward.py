"""Backwards are never split: there are no W to fill gaps with."""

from __future__ import annotations

from impls.reference.pipeline.actions import Action, Kind
from impls.reference.pipeline.dualpipe import dualpipe as both_ways

BREAKS = ("pipeline.bubble-growth.dualpipe",)


def dualpipe(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, with B in place of I, and no W."""
    rows = both_ways(num_stages, num_microbatches)
    return [[_whole(action) for action in row if action.kind is not Kind.WEIGHT] for row in rows]


def _whole(action: Action) -> Action:
    return Action(Kind.BACKWARD, action.stage, action.microbatch) if action.kind is Kind.INPUT else action
