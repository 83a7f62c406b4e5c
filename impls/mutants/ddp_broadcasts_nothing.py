"""The wrapper broadcasts nothing at construction."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from impls.reference import data_parallel as right

BREAKS = ("loop.construct-broadcast", "loop.step")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        kept = [tensor.detach().clone() for tensor in [*module.parameters(), *module.buffers()]]
        super().__init__(module, *args, **kwargs)
        with torch.no_grad():
            for tensor, own in zip([*module.parameters(), *module.buffers()], kept, strict=True):
                tensor.copy_(own)
