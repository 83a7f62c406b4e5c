"""Stages that count the microbatches whose activations are alive. Imports no pytest."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from conformance.pipeline.case import placement
from conformance.pipeline.observed import WIDTH, run
from fixtures.world.context import RankContext

STEPS = 2


class _Save(torch.autograd.Function):
    """The identity; keeps a tensor of its own until backward, as layers keep their activations."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, follow: Callable[[Tensor], None]) -> Tensor:
        kept = x * 1
        ctx.save_for_backward(kept)
        follow(kept)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (_,) = ctx.saved_tensors
        return gradients[0], None


def _storage(tensor: Tensor) -> Any:
    """A weak reference."""
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


class Followed(nn.Module):
    """A layer that counts the microbatches whose activations are alive whenever it is called.

    Alive is what autograd keeps of a microbatch, and on the last stage what the stage returned, but for the latest: a
    variable of the loop may hold that until the next is there.
    """

    def __init__(self, *, is_last: bool, bound: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(WIDTH))
        self.most = 0
        self._is_last, self._bound = is_last, bound
        self._saved: list[Any] = []  # weak references to storages
        self._returned: list[Any] = []

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]."""
        if x.is_meta or not torch.is_grad_enabled():
            return x @ self.weight
        out: Tensor = _Save.apply(x @ self.weight, self._follow)  # type: ignore[no-untyped-call]
        self.most = max(self.most, self._alive())
        self._returned.append(_storage(out))
        return out

    @property
    def left(self) -> int:
        """What the stage returned in earlier steps that is still alive; the last one's may wait for the next."""
        return sum(not out.expired() for out in self._returned[: -(len(self._returned) // STEPS)])

    def _follow(self, tensor: Tensor) -> None:
        self._saved.append(_storage(tensor))

    def _alive(self) -> int:
        """Cycles that nobody holds any more do not count; looking for them takes time."""
        if self._count() > self._bound:
            gc.collect()
        return self._count()

    def _count(self) -> int:
        latest = len(self._returned) - 1
        found = {number for number, saved in enumerate(self._saved) if not saved.expired()}
        if self._is_last:
            found |= {number for number, out in enumerate(self._returned) if number != latest and not out.expired()}
        return len(found)


def alive(ctx: RankContext, schedule: str, num_microbatches: int, bound: int) -> dict[str, Any]:
    """The most microbatches that were alive at once on this rank's stages together."""
    places = placement(schedule, ctx.world_size)
    made: list[Followed] = []

    def make(stage: int) -> nn.Module:
        made.append(Followed(is_last=stage == places.num_stages - 1, bound=bound))
        return made[-1]

    driver = run(ctx, schedule, num_microbatches, make, steps=STEPS)
    gc.collect()
    return {
        "most": max(each.most for each in made),
        "left": sum(each.left for each in made),
        "schedule": driver.schedule_name,
    }
