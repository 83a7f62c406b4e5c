"""The wrapper broadcasts only parameters that learn."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from impls.reference import data_parallel as right

BREAKS = ("loop.construct-broadcast", "resists.missing-broadcast")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        kept = [tensor.detach().clone() for tensor in [p for p in module.parameters() if not p.requires_grad]]
        super().__init__(module, *args, **kwargs)
        with torch.no_grad():
            for tensor, own in zip([p for p in module.parameters() if not p.requires_grad], kept, strict=True):
                tensor.copy_(own)
