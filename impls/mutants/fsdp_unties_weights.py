"""Fully sharded: a parameter under two names becomes two, which part in the first step."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference import fsdp as right

BREAKS = ("zero.equivalence",)


def fully_shard(
    module: nn.Module, group: dist.ProcessGroup | None = None, reshard_after_forward: bool = True
) -> right.FullySharded:
    """As the reference, but for the fault."""
    seen = set()
    for layer in module.modules():
        for name, parameter in layer.named_parameters(recurse=False):
            if parameter in seen:
                setattr(layer, name, nn.Parameter(parameter.detach().clone()))
            seen.add(parameter)
    return right.fully_shard(module, group, reshard_after_forward)
