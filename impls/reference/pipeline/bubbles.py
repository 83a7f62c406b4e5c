"""The bubble as one figure: idle time as a share of total time, of the simulated schedule and not by formula.

All take P ranks and M microbatches, and raise ValueError for numbers that the schedule does not allow:
``bubble_1f1b(4, 8)`` is 3/11. Other conventions go by keyword, see `Conventions`.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.costs import Costs, Number
from impls.reference.pipeline.dualpipe import dualpipe, dualpipev
from impls.reference.pipeline.schedules import gpipe, one_f_one_b, require
from impls.reference.pipeline.simulate import ShareOf, simulate
from impls.reference.pipeline.zero_bubble import zb_h1

NUM_STAGES = 4
NUM_MICROBATCHES = 8


class Conventions(TypedDict, total=False):
    """What the figure is of. Costs are those of 1/N of the model for one microbatch: so schedules are comparable."""

    forward: Number  # 1
    input: Number  # 1, the half of the backward that the rank before waits for
    weight: Number  # 1, its other half
    pair: Number  # forward + input + weight, what an overlapped forward and backward take (DualPipe, DualPipeV)
    latency: Number  # 0, of a message between two ranks
    of: str  # "total"; or "ideal", the share of the time without idling
    barrier: bool  # True; or False, only the idle time between a rank's first action and its last


def bubble_fraction(
    num_stages: int = NUM_STAGES, num_microbatches: int = NUM_MICROBATCHES, **conventions: Unpack[Conventions]
) -> float:
    """GPipe: (P-1)/(M+P-1) with the usual conventions."""
    return _bubble(gpipe(num_stages, num_microbatches), **conventions)


def bubble_1f1b(
    num_stages: int = NUM_STAGES, num_microbatches: int = NUM_MICROBATCHES, **conventions: Unpack[Conventions]
) -> float:
    """1F1B: as GPipe, as long as messages take no time."""
    return _bubble(one_f_one_b(num_stages, num_microbatches), **conventions)


def bubble_zero_bubble(
    num_stages: int = NUM_STAGES, num_microbatches: int = NUM_MICROBATCHES, **conventions: Unpack[Conventions]
) -> float:
    """ZB-H1, with no more memory than 1F1B: (P-1)/(3M+P-1) with the usual conventions. M >= P."""
    enough = num_microbatches >= num_stages
    require("a bubble filled by ZB-H1", num_stages, num_microbatches, legal=enough, rule="N >= 1 and M >= N")
    return _bubble(zb_h1(num_stages, num_microbatches), **conventions)


def bubble_dualpipe(
    num_stages: int = NUM_STAGES, num_microbatches: int = NUM_MICROBATCHES, **conventions: Unpack[Conventions]
) -> float:
    """DualPipe: (P-2)/(3M+P-2) with the usual conventions. P and M even, M >= 2P."""
    return _bubble(dualpipe(num_stages, num_microbatches), **conventions)


def bubble_dualpipev(
    num_stages: int = NUM_STAGES, num_microbatches: int = NUM_MICROBATCHES, **conventions: Unpack[Conventions]
) -> float:
    """DualPipeV, two of 2P stages on each rank: (P-1)/(3M+P-1) with the usual conventions. M >= 2P."""
    return _bubble(dualpipev(num_stages, num_microbatches), **conventions)


def _bubble(
    schedule: Schedule,
    forward: Number = 1,
    input: Number = 1,  # noqa: A002  (the kind of action is called so)
    weight: Number = 1,
    pair: Number | None = None,
    latency: Number = 0,
    of: str = ShareOf.TOTAL,
    barrier: bool = True,
) -> float:
    costs = Costs(forward=forward, input=input, weight=weight, pair=pair, latency=latency)
    return float(simulate(schedule, costs.of_rank(schedule)).bubble_share(of, barrier=barrier))
