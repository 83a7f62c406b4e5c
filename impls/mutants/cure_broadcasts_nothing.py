"""The cure of a missing broadcast seeds all ranks alike, after the weights are made."""

from __future__ import annotations

import torch
from torch import nn

BREAKS = ("trouble.missing-broadcast",)


def cure_missing_broadcast(module: nn.Module) -> None:
    """Too late: the module has its weights already."""
    torch.manual_seed(0)
