"""Pipeline: the gradients of DualPipe's two copies of a stage are averaged, not summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from impls.reference.pipeline.execute import train_step as right

BREAKS = ("pipeline.equivalence",)


def train_step(
    stage: nn.Module | Sequence[nn.Module],
    microbatches: Sequence[Any],
    targets: Sequence[Any],
    loss_fn: Callable[[Any, Any], Tensor],
    schedule: str = "1f1b",
) -> list[Tensor]:
    """As the reference, but for the fault."""
    losses = right(stage, microbatches, targets, loss_fn, schedule)
    modules = stage if isinstance(stage, (list, tuple)) else [stage]
    for parameter in (p for module in modules for p in module.parameters()):
        if schedule == "dualpipe" and parameter.grad is not None:
            parameter.grad /= 2
    return losses
