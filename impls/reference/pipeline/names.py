"""Schedules by name, for whoever gets the name from a user."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping

from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.dualpipe import dualpipe, dualpipev
from impls.reference.pipeline.schedules import gpipe, interleaved_1f1b, one_f_one_b
from impls.reference.pipeline.zero_bubble import zb_h1, zb_h2, zbv

SCHEDULES: Mapping[str, Callable[[int, int], Schedule]] = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "interleaved_1f1b": interleaved_1f1b,
    "zb_h1": zb_h1,
    "zb_h2": zb_h2,
    "zbv": zbv,
    "dualpipe": dualpipe,
    "dualpipev": dualpipev,
}
_OTHERS = {"onefoneb": "1f1b", "interleaved": "interleaved_1f1b"}


@functools.lru_cache(maxsize=64)
def named(name: str, num_ranks: int, num_microbatches: int, num_chunks: int = 1) -> Schedule:
    """The schedule of this name; capitals, ``-`` and ``_`` make no difference. `num_chunks`: stages per rank.

    ValueError for a name that does not exist, and for numbers that the schedule does not allow.
    """
    plain = _plain(name)
    found = next((known for known in SCHEDULES if _plain(known) == plain), _OTHERS.get(plain))
    if found is None:
        near = difflib.get_close_matches(plain, SCHEDULES, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"there is no schedule {name!r}. {hint}There are {', '.join(SCHEDULES)}.")
    if found == "interleaved_1f1b":
        return interleaved_1f1b(num_ranks, num_microbatches, num_chunks)
    return SCHEDULES[found](num_ranks, num_microbatches)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
