"""Forwards and backwards of the steady state are merged into overlapped pairs."""

from __future__ import annotations

import dataclasses

from impls.reference.pipeline import schedules as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.overlap.1f1b",)


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """Combined 1F1B: all ranks but the last pair."""
    *others, last = right.one_f_one_b(num_stages, num_microbatches)
    return [*[_paired(row, min(num_stages - 1 - rank, num_microbatches)) for rank, row in enumerate(others)], last]


def _paired(row: list[Action], ahead: int) -> list[Action]:
    steady = row[ahead : len(row) - ahead]
    pairs = [dataclasses.replace(f, beside=b) for f, b in zip(steady[::2], steady[1::2], strict=True)]
    return [*row[:ahead], *pairs, *row[len(row) - ahead :]]
