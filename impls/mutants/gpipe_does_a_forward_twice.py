"""The first rank does its last forward a second time before it turns round."""

from __future__ import annotations

from impls.reference.pipeline import schedules as right
from impls.reference.pipeline.actions import Action

BREAKS = ("pipeline.gpipe.bubble",)


def gpipe(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, but for the fault."""
    first, *others = right.gpipe(num_stages, num_microbatches)
    return [[*first[:num_microbatches], *first[num_microbatches - 1 :]], *others]
