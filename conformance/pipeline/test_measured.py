"""How long ranks really idle when their stages take time: the executed pipeline beside the model of its schedule.

Work is sleep, so ranks need no cores of their own. What messages and a busy machine add is idle time too, and no fault;
only a pipeline whose ranks do not work at the same time idles so much that more microbatches are of no use to it.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.equivalence import AS_1F1B
from conformance.pipeline.idle import percent, timeline
from conformance.pipeline.performed import Performed, perform
from conformance.verdict import Tier, Witness

RANKS, FEW, MANY = 3, 3, 12
UNIT_S = 0.02
SLOWER = 4  # times as long as that, for a second look: then messages and a busy machine count less
BUSY = 0.3  # a machine on which sleep takes so much longer than asked tells nothing
HOW: dict[str, Any] = {"tier": Tier.CONTRACT, "provides": ["train_step"], "alone": True}


def _many(subject: Subject, judge: Judge, schedule: str, limit: float) -> Performed:
    """With many microbatches; a second time with slower stages, where the first has idled too long."""
    done = perform(subject, judge, schedule, RANKS, MANY, UNIT_S, warm=True)
    if done.idle_share <= limit:
        return done
    return perform(subject, judge, schedule, RANKS, MANY, SLOWER * UNIT_S, warm=True)


def _points(schedule: str, *done: Performed) -> dict[str, Any]:
    """For the picture of idle shares: measured, on the model's line."""
    points = [{"x": one.count, "observed": one.idle_share, "formula": one.model_share} for one in done]
    return {"plot": "bubble-share", "label": f"N = {RANKS}, measured", "line": schedule, "points": points}


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param("gpipe", marks=claim("pipeline.gpipe.bubble", **HOW)),
        pytest.param("1f1b", marks=[claim("pipeline.1f1b.same-bubble", **HOW), AS_1F1B]),
        pytest.param("zb_h1", marks=claim("pipeline.zb.split", **HOW)),
    ],
)
def test_measured_idle_share_falls_with_m_as_that_of_the_model_does(
    subject: Subject, judge: Judge, schedule: str
) -> None:
    few = perform(subject, judge, schedule, RANKS, FEW, UNIT_S, warm=True)
    limit = float(timeline(few.plain).bubble_share())
    many = _many(subject, judge, schedule, limit)
    told = f"{few.told}; {many.told}"
    if many.idle_share > limit and many.oversleep > BUSY:
        judge.inconclusive(f"this machine is too busy to measure idle time: work takes {many.oversleep:.0%} longer")
    if many.idle_share > limit:
        judge.violated(
            f"with {MANY} microbatches the {RANKS} ranks idle longer than 1F1B has to with {FEW}: they work one after "
            f"another in place of at the same time. {told}",
            expected=f"below {percent(limit)} of their time",
            observed=percent(many.idle_share),
            witness=Witness.CLOCK,
            data=many.charts,
        )
    judge.holds(
        expected=f"below {percent(limit)} of the time, which 1F1B idles for with {FEW} microbatches",
        observed=percent(many.idle_share),
        witness=Witness.CLOCK,
        message=told,
        data=many.charts | _points(schedule, few, many),
    )
