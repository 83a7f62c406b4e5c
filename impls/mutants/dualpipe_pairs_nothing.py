"""Forwards and backwards follow each other, none overlap."""

from __future__ import annotations

from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.dualpipe import dualpipe as both_ways

BREAKS = ("pipeline.overlap.dualpipe", "pipeline.bubble-growth.dualpipe")


def dualpipe(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, with pairs taken apart."""
    return [[part for action in row for part in action.parts] for row in both_ways(num_stages, num_microbatches)]
