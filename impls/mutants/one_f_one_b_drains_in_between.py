"""1F1B runs empty after every N microbatches, and the next N fill it anew."""

from __future__ import annotations

import dataclasses

from impls.reference.pipeline import schedules
from impls.reference.pipeline.actions import Action

BREAKS = ("strategies.pipeline.cost",)


def one_f_one_b(num_stages: int, num_microbatches: int) -> list[list[Action]]:
    """One 1F1B after another, of N microbatches each."""
    schedules.one_f_one_b(num_stages, num_microbatches)  # refuses what is not allowed
    lists: list[list[Action]] = [[] for _ in range(num_stages)]
    for first in range(0, num_microbatches, num_stages):
        batch = schedules.one_f_one_b(num_stages, min(num_stages, num_microbatches - first))
        for actions, more in zip(lists, batch, strict=True):
            actions += [dataclasses.replace(action, microbatch=first + action.microbatch) for action in more]
    return lists
