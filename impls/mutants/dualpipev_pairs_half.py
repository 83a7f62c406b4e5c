"""Only forwards of a rank's first stage are paired with a backward."""

from __future__ import annotations

from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.dualpipe import dualpipev as in_a_v

BREAKS = ("pipeline.overlap.dualpipev",)


def dualpipev(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """As the reference, with every other pair taken apart."""
    rows = in_a_v(num_stages, num_microbatches)
    return [
        [part for action in row for part in (action.parts if action.stage > stages[0] else [action])]
        for row, stages in zip(rows, map(rows.stages_of, range(num_stages)), strict=True)
    ]
