"""An advisor that has one answer for all models: what mutants that always choose a pipeline of 16 stages share."""

from __future__ import annotations

from collections.abc import Callable


def scheduled_by(schedule: str) -> Callable[..., dict[str, object]]:
    """Tensor parallelism inside of 8 devices, 16 stages, and this schedule, whatever is asked."""

    def advise(**_: object) -> dict[str, object]:
        return {"stage": "1", "tp": 8, "pp": 16, "schedule": schedule}

    return advise
