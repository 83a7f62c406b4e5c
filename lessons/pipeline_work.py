"""Stages whose work takes as long as asked, and what a rank did with them when: each F, I and W with begin and end.

Runs on ranks, and prints nothing. The work is sleep, so that many ranks on few cores take the times of a schedule. The
moments come from within forward and from within autograd, not from what the pipeline says that it did. A microbatch is
known by a number that is in the first column of its activations, and passes through all stages.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from fixtures.world.context import RankContext
from impls.pipelines import pipeline

WIDTH = 4
ROWS = 2  # of each microbatch
FIRST = 1000  # what microbatch 0 is marked with
MOST_MICROBATCHES = 2**24  # that a float tells apart

Moment = tuple[str, int, int, int, int]  # kind, stage, microbatch, begin and end in ns of a clock that all ranks share


@dataclasses.dataclass(slots=True)
class Work:
    """How long each kind of action takes, in s, and the list of what was done. Nothing takes time until it has `begun`.

    `mark`: told ``F0.3-begin`` and ``F0.3-end``, to name these moments in a trace.
    """

    durations_s: Mapping[str, float]
    moments: list[Moment] = dataclasses.field(default_factory=list)
    begun: bool = False
    mark: Callable[[str], None] = lambda name: None

    def do(self, kind: str, stage: int, microbatch: int) -> None:
        """Take the time that it takes, and note it."""
        if self.begun and microbatch >= 0:
            self.mark(f"{kind}{stage}.{microbatch}-begin")
            began = time.monotonic_ns()
            time.sleep(self.durations_s[kind])
            self.moments.append((kind, stage, microbatch, began, time.monotonic_ns()))
            self.mark(f"{kind}{stage}.{microbatch}-end")


class _Slow(torch.autograd.Function):
    """Passes a tensor on, and does work when its gradient comes back."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, work: Work, action: tuple[str, int, int]) -> Tensor:
        ctx.work, ctx.action = work, action
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        ctx.work.do(*ctx.action)
        return gradient, None, None


class Stage(nn.Module):
    """A layer. The gradient of its output does the work of I, the one of its weight that of W."""

    def __init__(self, number: int, work: Work) -> None:
        super().__init__()
        self.number, self.work = number, work
        self.weight = nn.Parameter(torch.eye(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """[ROWS, WIDTH] to [ROWS, WIDTH], the first column unchanged."""
        microbatch = _number(x)
        self.work.do("F", self.number, microbatch)
        weight = _slow(self.weight, self.work, ("W", self.number, microbatch))
        out = _slow(functional.linear(x, weight), self.work, ("I", self.number, microbatch))
        return torch.cat([x[:, :1], out[:, 1:]], 1)


def _number(x: Tensor) -> int:
    """Of the microbatch; -1 for what is none: some pipelines try stages out with zeros, or memory as they found it."""
    first = float(x.detach().flatten()[0]) if x.numel() and not x.is_meta else 0.0
    return int(first) - FIRST if first.is_integer() and FIRST <= first < MOST_MICROBATCHES else -1


def _slow(tensor: Tensor, work: Work, action: tuple[str, int, int]) -> Tensor:
    slowed: Tensor = _Slow.apply(tensor, work, action)  # type: ignore[no-untyped-call]  # torch
    return slowed


def record(
    ctx: RankContext,
    name: str,
    stages: Sequence[Sequence[int]],
    num_microbatches: int,
    durations_s: Mapping[str, float],
) -> list[Moment]:
    """Rank program: one step of the implementation's pipeline, after one in which nothing takes time.

    `stages`: the numbers of those that each rank holds.
    """
    assert ctx.impl is not None
    work = Work(durations_s)
    held = [Stage(number, work) for number in stages[ctx.rank]]
    driver = pipeline(ctx.impl, held, functional.mse_loss, schedule=name, rank=ctx.rank, world_size=ctx.world_size)
    inputs = [torch.full((ROWS, WIDTH), float(FIRST + number)) for number in range(num_microbatches)]
    targets = [torch.zeros(ROWS, WIDTH) for _ in inputs]
    driver.step(inputs, targets)
    dist.barrier()
    work.begun = True
    driver.step(inputs, targets)
    return work.moments
