"""The cure of slow accumulation reduces the last microbatch's gradient, and adds each rank's own earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

BREAKS = ("trouble.slow-accumulation",)


def cure_slow_accumulation(
    module: nn.Module, microbatches: Sequence[Tensor], loss_fn: Callable[[Tensor], Tensor]
) -> None:
    """The ranks disagree on all microbatches but one."""
    with module.no_sync():
        for rows in microbatches[:-1]:
            loss_fn(module(rows)).backward()
    own = {parameter: parameter.grad for parameter in module.parameters()}
    module.zero_grad(set_to_none=True)
    loss_fn(module(microbatches[-1])).backward()
    for parameter, grad in own.items():
        if parameter.grad is not None and grad is not None:
            parameter.grad += grad
