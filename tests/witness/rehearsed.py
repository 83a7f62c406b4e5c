"""Rank programs that rehearse the reference's steps on fake tensors, for the tests."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import nn

from fixtures.rehearsal import Computed, Issued, rehearse, timed
from fixtures.world.context import RankContext
from impls.loading import load
from impls.reference.network.presets import cluster
from impls.reference.network.timeline import simulate

LAYERS, WIDTH = 6, 4096


def _model() -> nn.Module:
    with torch.device("meta"):
        return nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.bfloat16) for _ in range(LAYERS)))


def step(ctx: RankContext, name: str, world_size: int, tokens: int) -> dict[str, Any]:
    """One step of a stage of the reference, as rank 0 of `world_size`: what it did, and what that takes."""
    happened = rehearse(
        load("reference"),
        name,
        _model(),
        lambda: torch.empty(2, WIDTH, dtype=torch.bfloat16, requires_grad=True),
        world_size=world_size,
    )
    events = timed(happened, cluster(), tokens=tokens, flops=2e14)
    return {
        "operations": [[it.kind, it.num_bytes, len(it.ranks)] for it in happened if isinstance(it, Issued)],
        "computed": [[it.layer, it.backward] for it in happened if isinstance(it, Computed)],
        "time": dataclasses.asdict(simulate(events)),
    }
