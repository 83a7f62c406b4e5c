"""The broadcast at construction reaches ranks 0 and 1, and no rank beyond."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from impls.reference import data_parallel as right

BREAKS = ("lessons.48.world-size", "loop.construct-broadcast")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        kept = [tensor.detach().clone() for tensor in [*module.parameters(), *module.buffers()]]
        super().__init__(module, *args, **kwargs)
        if dist.get_rank() > 1:
            with torch.no_grad():
                for tensor, own in zip([*module.parameters(), *module.buffers()], kept, strict=True):
                    tensor.copy_(own)
