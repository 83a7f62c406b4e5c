"""Every W comes right after its I, and fills no gap."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right

BREAKS = ("pipeline.overlap.zb", "pipeline.zb.split", "pipeline.bubble-growth.zb")


def zb_h1(num_stages: int, num_microbatches: int) -> list[list[str]]:
    """1F1B with its backward in two halves."""
    return [
        [half for action in row for half in _halves(str(action))]
        for row in right.one_f_one_b(num_stages, num_microbatches)
    ]


def _halves(action: str) -> list[str]:
    return [action] if action[0] == "F" else [f"I{action[1:]}", f"W{action[1:]}"]
