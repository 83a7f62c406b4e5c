"""Stages that tell what is computed on them and for which microbatch. Imports no pytest.

The check supplies these modules, so nothing that the implementation says of itself is taken for an event. Events are

    F   forward, with gradients recorded ("f": without, as in a trial run, or where forward is done again later)
    I   the gradient of the stage's input was computed; not seen on the first stage, whose input wants none
    W   the gradient of the stage's weight was computed

The stages take as long as the `Work` that they do: sleep, so that many ranks on few cores take a schedule's times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from conformance.pipeline.case import placement
from fixtures.world.context import RankContext
from impls.pipelines import Driver, pipeline, refusals
from impls.reference.pipeline.placement import Placement
from lessons.pipeline_work import Work

WIDTH = 4
FIRST = 64.0  # the value by which microbatch 0 is known; trial runs have zeros, ones or noise


class Event(NamedTuple):
    """One computation. `call` tells forward passes of one microbatch apart."""

    kind: str
    stage: int
    microbatch: int
    call: int
    at_ns: int


class Observed(nn.Module):
    """Hands on what it gets, through a product with a weight; tells of it, and does `work`.

    The work of I is done when the gradient of the output comes, on the first stage too.
    """

    def __init__(self, stage: int, num_microbatches: int, tell: Callable[[Event], None], work: Work) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(WIDTH))
        self._stage, self._count, self._tell, self._work, self._calls = stage, num_microbatches, tell, work, 0

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to the same values."""
        microbatch = None if x.is_meta or not x.numel() else known(float(x.detach().flatten()[0]), self._count)
        if microbatch is None:
            return x @ self.weight
        self._calls += 1
        where = (self._stage, microbatch, self._calls)
        self._work.do("F", *where[:2])
        if not torch.is_grad_enabled():
            self._note("f", *where)
            return x @ self.weight
        self._note("F", *where)
        own, weight = x * 1, self.weight * 1  # tensors of this forward alone
        on_gradient(weight, lambda: self._note("W", *where, works=True))
        if own.requires_grad:
            on_gradient(own, lambda: self._note("I", *where))
        out = own @ weight * 1  # by itself behind the product, where a later W does not come by again
        on_gradient(out, lambda: self._work.do("I", *where[:2]))
        return out

    def _note(self, kind: str, stage: int, microbatch: int, call: int, *, works: bool = False) -> None:
        if works:
            self._work.do(kind, stage, microbatch)
        self._tell(Event(kind, stage, microbatch, call, time.monotonic_ns()))


def known(value: float, count: int) -> int | None:
    """The microbatch that a value stands for, if it does."""
    return int(value - FIRST) if value - FIRST in range(count) else None


def on_gradient(tensor: Tensor, note: Callable[[], None]) -> None:
    """Call `note` when the gradient of `tensor` is computed."""

    def hook(gradient: Tensor) -> None:
        note()

    tensor.register_hook(hook)  # type: ignore[no-untyped-call]


def numbered(count: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Microbatches that are known by their values."""
    return [torch.full((1, WIDTH), FIRST + number, dtype=dtype) for number in range(count)]


def _inputs(ctx: RankContext, places: Placement, count: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """The numbers where the first stage is; elsewhere zeros, so that they have to come from the stage before."""
    numbers = numbered(count, dtype)
    return numbers if 0 in places.stages_of(ctx.rank) else [torch.zeros_like(x) for x in numbers]


def product(output: Tensor, target: Tensor) -> Tensor:
    """A loss with gradients."""
    return (output * target).sum() / len(output)


def order(ctx: RankContext, schedule: str, num_microbatches: int, unit_s: float, warm: bool = False) -> dict[str, Any]:
    """What this rank computed in a step, in order and when, and under which name.

    `unit_s`: what F, I and W of 1/N of the model take. `warm`: another step comes first, in which nothing takes time.
    """
    events: list[Event] = []
    places = placement(schedule, ctx.world_size)
    each_s = unit_s * ctx.world_size / places.num_stages
    work = Work(dict.fromkeys("FIW", each_s), begun=not warm, mark=ctx.mark)

    def make(stage: int) -> nn.Module:
        return Observed(stage, num_microbatches, events.append, work)

    driver = run(ctx, schedule, num_microbatches, make)
    if warm:
        dist.barrier()
        events.clear()
        work.begun = True
        driver.step(_inputs(ctx, places, num_microbatches), numbered(num_microbatches))
    return {"events": [tuple(event) for event in events], "moments": work.moments, "schedule": driver.schedule_name}


def run(
    ctx: RankContext,
    schedule: str,
    num_microbatches: int,
    make: Callable[[int], nn.Module],
    targets: list[Tensor] | None = None,
    steps: int = 1,
) -> Driver:
    """Steps over stages that `make` makes by their number."""
    assert ctx.impl is not None
    places = placement(schedule, ctx.world_size)
    own = [make(stage) for stage in places.stages_of(ctx.rank)]
    driver = pipeline(ctx.impl, own, product, schedule=schedule, rank=ctx.rank, world_size=ctx.world_size)
    targets = numbered(num_microbatches) if targets is None else targets
    with refusals(f"{schedule} with {num_microbatches} microbatches on {ctx.world_size} ranks"):
        for _ in range(steps):
            driver.step(_inputs(ctx, places, num_microbatches, targets[0].dtype), targets)
    return driver
