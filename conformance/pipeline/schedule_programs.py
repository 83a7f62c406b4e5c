"""An implementation's schedules and bubbles as plain data, fetched in a rank process. Nothing of them is executed.

Imports no pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any

import torch

from fixtures.world.context import RankContext
from impls.loading import Implementation, NotProvided
from impls.reference.pipeline.actions import Schedule
from impls.schedule_calls import schedule_of
from impls.schedule_forms import ScheduleError

Asked = tuple[str, int, int]  # a name of the contract, N and M


def schedules(ctx: RankContext, asked: Sequence[Asked], strict: bool = False) -> list[dict[str, Any]]:
    """For each name and sizes the schedule, or what came in its place; with `strict` what is raised is raised here."""
    return [_told(lambda one=one: _as_data(_schedule(ctx.impl, *one)), strict) for one in asked]  # type: ignore[misc]


def bubbles(ctx: RankContext, asked: Sequence[Asked], strict: bool = False) -> list[dict[str, Any]]:
    """For each name and sizes the number that the function returns, or what came in its place."""
    return [_told(lambda one=one: _number(_bubble(ctx.impl, *one)), strict) for one in asked]  # type: ignore[misc]


def _schedule(impl: Implementation | None, *asked: Any) -> Schedule:
    assert impl is not None
    return schedule_of(impl, *asked)


def _as_data(schedule: Schedule) -> dict[str, Any]:
    beside = None if schedule.beside is None else torch.from_numpy(schedule.beside)
    ranks = [list(way) for way in schedule.placement.ranks]
    return {"ranks": ranks, "slots": torch.from_numpy(schedule.slots), "beside": beside}


def _bubble(impl: Implementation | None, name: str, num_ranks: int, num_microbatches: int) -> Any:
    assert impl is not None
    return impl.call(name, num_stages=num_ranks, num_microbatches=num_microbatches)


def _number(value: Any) -> dict[str, Any]:
    """A number exactly, and how many bits a float has; anything else by its type."""
    if isinstance(value, Rational):
        return {"numerator": int(value.numerator), "denominator": int(value.denominator), "bits": 64}
    bits = 8 * getattr(getattr(value, "dtype", None), "itemsize", 8)
    try:
        exact = Fraction(float(value)) if not isinstance(value, str | bool) else None
    except (TypeError, ValueError, OverflowError):  # nothing that is a number, or not a finite one
        exact = None
    if exact is None:
        return {"unreadable": f"returned {value!r:.80}, not a number"}
    return {"numerator": exact.numerator, "denominator": exact.denominator, "bits": bits}


def _told(fetch: Callable[[], dict[str, Any]], strict: bool) -> dict[str, Any]:
    try:
        return fetch()
    except NotProvided as error:
        return {"missing": str(error)}
    except ScheduleError as error:
        return {"unreadable": str(error)}
    except Exception as error:
        if strict:
            raise
        return {"raised": type(error).__name__, "text": str(error), "refuses": isinstance(error, ValueError)}
