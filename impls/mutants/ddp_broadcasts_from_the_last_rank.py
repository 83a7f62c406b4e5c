"""The wrapper broadcasts from the last rank, not from rank 0."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import nn

from impls.reference import data_parallel as right
from impls.reference.calls import broadcast_parameters as _broadcast

BREAKS = ("loop.construct-broadcast",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        _broadcast(module, src=dist.get_world_size() - 1)
        super().__init__(module, *args, **kwargs)
