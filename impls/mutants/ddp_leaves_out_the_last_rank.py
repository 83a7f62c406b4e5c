"""The last rank's rows have no part in the mean: it sends zeros."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import data_parallel as right

BREAKS = ("loop.mean", "memory.effective-batch")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _launch(self, bucket: right.Bucket) -> None:
        if self.world_size > 1 and dist.get_rank(self._group) == self.world_size - 1:
            for parameter in bucket.parameters:
                if parameter.grad is not None:
                    parameter.grad.zero_()
        super()._launch(bucket)
