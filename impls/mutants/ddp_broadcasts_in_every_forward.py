"""Every forward pass broadcasts all parameters again, which are equal anyhow."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.traffic",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass, after a needless broadcast."""
        for parameter in self.module.parameters():
            dist.broadcast(parameter.data, group_src=0, group=self._group)
        return super().forward(*args, **kwargs)
