"""The pipeline runs empty after half of the microbatches: with more of them the bubble comes twice."""

from __future__ import annotations

import dataclasses

from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.dualpipe import dualpipev as in_a_v

BREAKS = ("pipeline.bubble-growth.dualpipev",)


def dualpipev(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """DualPipeV twice, as soon as either half has microbatches enough."""
    if num_microbatches < 4 * num_stages:
        return list(in_a_v(num_stages, num_microbatches))
    half = num_microbatches // 2
    first, second = in_a_v(num_stages, half), in_a_v(num_stages, num_microbatches - half)
    return [a + [_later(action, half) for action in b] for a, b in zip(first, second, strict=True)]


def _later(action: Action, by: int) -> Action:
    beside = action.beside and _later(action.beside, by)
    return dataclasses.replace(action, microbatch=action.microbatch + by, beside=beside)
