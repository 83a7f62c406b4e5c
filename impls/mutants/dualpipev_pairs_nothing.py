"""Forwards and backwards follow each other, none overlap."""

from __future__ import annotations

from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.dualpipe import dualpipev as in_a_v

BREAKS = ("pipeline.overlap.dualpipev", "pipeline.bubble-growth.dualpipev")


def dualpipev(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, with pairs taken apart."""
    return [[part for action in row for part in action.parts] for row in in_a_v(num_stages, num_microbatches)]
