"""Rank programs that ask an implementation for advice, and what it wants to know. Imports no pytest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fixtures.world.context import RankContext
from impls.advice_forms import Advice, read
from impls.contract import ENTRIES
from impls.handover import arguments


def ask(ctx: RankContext, cases: Sequence[Mapping[str, Any]]) -> list[Advice | None]:
    """The advice for each case, with stage, degrees and schedule; None where it says that nothing fits."""
    assert ctx.impl is not None
    return [read(ctx.impl.call("advise", **case)) for case in cases]


def asks_for(ctx: RankContext, figure: str, case: Mapping[str, Any]) -> bool:
    """Whether `figure` is among what the implementation is given of a case."""
    assert ctx.impl is not None
    marker = object()
    args, kwargs = arguments(ctx.impl.get("advise"), ENTRIES["advise"], {**case, figure: marker})
    return any(value is marker for value in (*args, *kwargs.values()))
