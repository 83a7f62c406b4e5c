"""Tensor parallel: of a hidden width that N does not divide the rest is on no rank, and nobody says so."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from impls.reference.tensor_parallel import blocks as right

BREAKS = ("strategies.tensor.equivalence",)


class ParallelMLP(right.ParallelMLP):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, group=None) -> None:
        usable = module.up.out_features // dist.get_world_size(group) * dist.get_world_size(group)
        up, down = module.up, module.down
        up.weight = nn.Parameter(up.weight[:usable].detach().clone(), requires_grad=up.weight.requires_grad)
        if up.bias is not None:
            up.bias = nn.Parameter(up.bias[:usable].detach().clone())
        down.weight = nn.Parameter(down.weight[:, :usable].detach().clone())
        super().__init__(module, group)
