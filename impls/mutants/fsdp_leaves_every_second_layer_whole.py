"""Fully sharded: every second layer stays whole on every rank, its gradients averaged as data parallelism does."""

from __future__ import annotations

import functools

import torch.distributed as dist
from torch import Tensor, nn

from impls.reference import fsdp as right

BREAKS = (
    "memory.fsdp-70b",
    "zero.sharded.3",
    "zero.memory.3",
    "zero.saving.3",
    "strategies.fsdp.partition",
    "strategies.fsdp.memory",
)


class HalfSharded(nn.Module):
    """Children with an even number are sharded as the reference does it, the others are not."""

    def __init__(self, module: nn.Module, group: dist.ProcessGroup | None, reshard_after_forward: bool) -> None:
        super().__init__()
        self.module = module
        for number, (name, child) in enumerate(list(module.named_children())):
            if number % 2 == 0:
                setattr(module, name, right.fully_shard(child, group, reshard_after_forward))
                continue
            for parameter in child.parameters():
                parameter.register_post_accumulate_grad_hook(functools.partial(_average, group))

    def forward(self, *args: object, **kwargs: object) -> object:
        """The module's own forward pass."""
        return self.module(*args, **kwargs)


def _average(group: dist.ProcessGroup | None, parameter: Tensor) -> None:
    assert parameter.grad is not None
    dist.all_reduce(parameter.grad, group=group)
    parameter.grad /= dist.get_world_size(group)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> HalfSharded:
    """As the reference, but for the fault."""
    return HalfSharded(module, group, reshard_after_forward)
