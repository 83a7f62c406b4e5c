"""An implementation's schedule, whichever way its function wants to be called: for all ranks at once, or for each."""

from __future__ import annotations

import inspect
from typing import Any

from impls.handover import takes
from impls.loading import Implementation
from impls.reference.pipeline.actions import Schedule
from impls.schedule_forms import read_schedule

NUM_CHUNKS = 2  # of interleaved 1F1B, unless somebody says otherwise


def schedule_of(
    impl: Implementation, name: str, num_ranks: int, num_microbatches: int, num_chunks: int = NUM_CHUNKS
) -> Schedule:
    """The schedule under a name of the contract. Raises `NotProvided`, `ScheduleError`, or what the function raises."""
    sizes: dict[str, Any] = {"num_stages": num_ranks, "num_microbatches": num_microbatches}
    if name == "interleaved_1f1b":
        sizes["num_chunks"] = num_chunks
    if _wants_a_rank(impl.get(name)):
        value: Any = [impl.call(name, rank=rank, **sizes) for rank in range(max(num_ranks, 1))]
    else:
        value = impl.call(name, **sizes)
    found: Schedule = impl.invoke(read_schedule, value, name, num_ranks, num_microbatches)  # generators run in it
    return found


def _wants_a_rank(target: Any) -> bool:
    """Whether it gives the list of one rank at a time: a rank is the one thing more that it has to be told."""
    if target is None or not takes(target, "rank"):
        return False
    required = [p for p in inspect.signature(target).parameters.values() if p.default is p.empty]
    return len(required) > 2
