"""The advice never is a pipeline, however slow the links between nodes are."""

from __future__ import annotations

from typing import Any

from impls.reference.advisor import advise as right

BREAKS = ("choose.pipeline",)


def advise(**figures: Any) -> Any:
    """As if there were one microbatch, which no pipeline is filled with."""
    return right(**{**figures, "num_microbatches": 1})
