"""Only rank 0 divides the sum."""

from __future__ import annotations

import torch
import torch.distributed as dist

from impls.reference import data_parallel as right

BREAKS = ("loop.mean", "loop.step")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _collect(self, bucket: right.Bucket) -> None:
        super()._collect(bucket)
        with torch.no_grad():
            for parameter in bucket.parameters:
                if parameter.grad is not None:
                    parameter.grad *= 1 if dist.get_rank() == 0 else self.world_size
