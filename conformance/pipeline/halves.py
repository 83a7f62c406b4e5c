"""Stages that tell whose weight gradients are in ``.grad`` whenever something is computed. Imports no pytest.

Microbatch m adds 16**m to the gradient of every bias, so the digits of ``.grad`` say which microbatches are in it, also
where they are divided by the number of microbatches in the end only.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor, nn

from conformance.pipeline.observed import FIRST, WIDTH, Event, known, on_gradient, run
from fixtures.world.context import RankContext

Seen = tuple[Event, float, float]  # an event, and what the gradients of bias and weight had when it came


class Telling(nn.Module):
    """Hands on what it gets; notes each event together with what its gradients have then."""

    def __init__(self, stage: int, count: int, seen: list[Seen]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(WIDTH))
        self.bias = nn.Parameter(torch.zeros(WIDTH))
        self._stage, self._count, self._seen, self._calls = stage, count, seen, 0

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to the same values."""
        microbatch = None if x.is_meta or not x.numel() else known(float(x.detach().flatten()[0]), self._count)
        if microbatch is None or not torch.is_grad_enabled():
            return x @ self.weight + self.bias
        self._calls += 1
        event = Event("F", self._stage, microbatch, self._calls, 0)
        self.note(event)
        own, weight = x * 1, self.weight * 1  # tensors of this forward alone
        on_gradient(weight, lambda: self.note(event._replace(kind="W")))
        if own.requires_grad:
            on_gradient(own, lambda: self.note(event._replace(kind="I")))
        return own @ weight + self.bias

    def note(self, event: Event) -> None:
        """Write down `event`, and what the gradients have."""
        grads = [0.0 if p.grad is None else float(p.grad.flatten()[0]) for p in (self.bias, self.weight)]
        self._seen.append((event._replace(at_ns=time.monotonic_ns()), grads[0], grads[1]))


def microbatches_in(value: float, count: int) -> set[int] | None:
    """The microbatches whose gradients are in a bias's gradient; None where it is no sum of such, each once."""
    if value < 0 or value != int(value):
        return None
    digits = [int(value) // 16**m % 16 for m in range(count)]
    scale = count if count in digits else 1
    whole = sum(scale * 16**m for m in range(count) if digits[m] == scale)
    return {m for m in range(count) if digits[m]} if whole == value else None


def in_the_end(count: int) -> list[float]:
    """The gradients of bias and weight after the step."""
    return [sum(16.0**m for m in range(count)), sum((FIRST + m) * 16.0**m for m in range(count))]


def watch(ctx: RankContext, schedule: str, count: int) -> dict[str, Any]:
    """By stage, all events with what the gradients had then, the state at the end among them."""
    seen: dict[int, list[Seen]] = {}
    made: dict[int, Telling] = {}

    def make(stage: int) -> nn.Module:
        made[stage] = Telling(stage, count, seen.setdefault(stage, []))
        return made[stage]

    targets = [torch.full((1, WIDTH), 16.0**m * count) for m in range(count)]  # for the mean
    run(ctx, schedule, count, make, targets)
    for stage, module in made.items():
        module.note(Event("end", stage, -1, -1, 0))
    return {"seen": {stage: [(tuple(event), *grads) for event, *grads in events] for stage, events in seen.items()}}
