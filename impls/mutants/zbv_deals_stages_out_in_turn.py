"""Rank r has the stages r and N+r: what comes back on rank 0 begins on rank N-1."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right

BREAKS = ("pipeline.copies.zb", "strategies.pipeline.partition")


def zbv(num_stages: int, num_microbatches: int) -> list[list[str]]:
    """Interleaved 1F1B with its backward in two halves."""
    if num_stages < 1 or num_microbatches < 2 * num_stages - 1:
        raise ValueError("M >= 2N-1")
    if num_microbatches % num_stages:
        raise NotImplementedError
    rows = right.interleaved_1f1b(num_stages, num_microbatches)
    return [[half for action in row for half in _halves(str(action))] for row in rows]


def _halves(action: str) -> list[str]:
    return [action] if action[0] == "F" else [f"I{action[1:]}", f"W{action[1:]}"]
