"""Pipeline: all actions in the right order, and only one rank works at a time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch.distributed as dist
from torch import Tensor

from impls.reference.pipeline import execute as right
from impls.reference.pipeline.actions import Action
from impls.reference.pipeline.simulate import simulate

BREAKS = ("pipeline.gpipe.bubble", "pipeline.1f1b.same-bubble", "pipeline.zb.split")


@functools.wraps(right.train_step)
def train_step(*args: Any, group: dist.ProcessGroup | None = None, **kwargs: Any) -> list[Tensor]:
    """As the reference, with a barrier of the group behind every action of any rank."""

    class Turns(right.Worker):
        def work(self, actions: Sequence[Action]) -> None:
            """In the order in which the schedule begins them."""
            timeline, me = simulate(self.schedule), dist.get_rank(group)
            spans = [
                (begin, rank, place)
                for rank in range(self.schedule.num_ranks)
                for place, (_, begin, _) in enumerate(timeline.spans(rank))
            ]
            do = {"F": self.forward, "B": self.backward, "I": self.backward_input, "W": self.backward_weight}
            for _, rank, place in sorted(spans):
                for part in actions[place].parts if rank == me else ():
                    do[part.kind](part)
                dist.barrier(group)
            self.post.flush()

    return right.step_with(Turns, *args, group=group, **kwargs)
