"""A rank program that asks an implementation for figures: one number for each set of arguments. Imports no pytest."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from fixtures.world.context import RankContext

PROBE = {"latency_s": 1e-6, "bandwidth": 1e9}  # by which the two meanings of beta are told apart


def figures(ctx: RankContext, name: str, cases: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """What function `name` answers to each case.

    A parameter called beta may be a bandwidth, or, as in much of the literature, seconds per byte: what makes a message
    of 1 MB take about a millisecond at 1e9 bytes per second is taken for its meaning.
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
    target = ctx.impl.get(name)
    try:
        names = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return False
    if not {"beta", "b"} & set(names):
        return False
    probe = {**case, **PROBE, **({"num_bytes": 1e6} if "num_bytes" in case else {}), "world_size": 8}
    answer = ctx.impl.call(name, **probe)
    if name == "crossover_bytes":
        return answer is not None and float(answer) < 1.0
    return float(answer) > 1e3
