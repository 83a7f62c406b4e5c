"""Gradients are reduced in hooks and once more at the end: right, at twice the traffic."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.traffic", "zero.comm.ddp", "zero.torch-name.ddp")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _collect(self, bucket: right.Bucket) -> None:
        super()._collect(bucket)
        bucket.load()
        dist.all_reduce(bucket.flat, group=self._group)
        bucket.unload(self.world_size)
