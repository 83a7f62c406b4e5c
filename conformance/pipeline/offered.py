"""Runs a program under a schedule, and asks for no schedule twice that an implementation does not offer.

Which of its names stand for which schedules is found out by building a pipeline; once that has failed for want of one,
no later check starts ranks for it.
"""

from __future__ import annotations

from typing import Any

from conformance.checks import Subject
from conformance.judge import Broken
from conformance.verdict import Verdict
from fixtures.world.outcome import Outcomes
from impls.pipelines import NOT_OFFERED

_missing: dict[tuple[str, str], str] = {}  # implementation and schedule: why it is not there


def run(subject: Subject, program: Any, world_size: int, schedule: str, *args: Any, **kwargs: Any) -> Outcomes:
    """Like ``subject.run(program, world_size, schedule, ...)``."""
    key = (subject.description.spec, schedule)
    if key in _missing:
        raise Broken(Verdict.NOT_PROVIDED, _missing[key])
    try:
        return subject.run(program, world_size, schedule, *args, **kwargs)
    except Broken as broken:
        if broken.verdict is Verdict.NOT_PROVIDED and NOT_OFFERED in broken.message:
            _missing[key] = broken.message
        raise
