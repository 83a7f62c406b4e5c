"""A rank program that asks an implementation for figures: one number for each set of arguments. Imports no pytest."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fixtures.world.context import RankContext
from impls.contract.parameters import SECONDS_PER_BYTE

# By which the two meanings of beta are told apart: 1 MB over 8 ranks takes milliseconds, and the crossover is at kB.
PROBE = {"num_bytes": 1e6, "world_size": 8, "latency_s": 1e-6, "bandwidth": 1e9}
PLAUSIBLE = {"crossover_bytes": 2e3}
MILLISECONDS = 2e-3


def figures(ctx: RankContext, name: str, cases: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """What function `name` answers to each case.

    A parameter called beta may be a bandwidth, or, as in much of the literature, seconds per byte: whichever gives the
    more plausible figure for a known case is meant. Other names of the inverse leave no doubt.
    """
    assert ctx.impl is not None
    inverse = _is_seconds_per_byte(ctx, name, cases[0])
    answers = []
    for case in cases:
        given = {**case, "bandwidth": 1 / case["bandwidth"]} if inverse else case
        answer = ctx.impl.call(name, **given)
        answers.append(None if answer is None else float(answer))
    return answers


def _is_seconds_per_byte(ctx: RankContext, name: str, case: Mapping[str, Any]) -> bool:
    assert ctx.impl is not None
    try:
        names = inspect.signature(ctx.impl.get(name)).parameters
    except (TypeError, ValueError):
        return False
    if set(SECONDS_PER_BYTE) & set(names):
        return True
    if not {"beta", "b"} & set(names):
        return False
    probe = {**case, **{key: value for key, value in PROBE.items() if key in case}}
    plausible = PLAUSIBLE.get(name, MILLISECONDS)

    def oddness(bandwidth: float) -> float:
        answer = ctx.impl.call(name, **{**probe, "bandwidth": bandwidth}) if ctx.impl else None
        return abs(math.log(float(answer) / plausible)) if answer and float(answer) > 0 else math.inf

    return oddness(1 / PROBE["bandwidth"]) < oddness(PROBE["bandwidth"])
