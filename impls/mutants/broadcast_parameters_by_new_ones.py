"""Broadcast values come in new parameters: an optimizer made before holds the old ones."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

BREAKS = ("calls.broadcast",)


def broadcast_parameters(module: nn.Module, src: int = 0) -> None:
    """Replace every parameter."""
    for inner in module.modules():
        for name, parameter in list(inner.named_parameters(recurse=False)):
            values = parameter.detach().clone()
            dist.broadcast(values, src=src)
            setattr(inner, name, nn.Parameter(values, requires_grad=parameter.requires_grad))
