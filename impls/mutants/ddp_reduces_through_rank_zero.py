"""Gradients are added up on rank 0 and sent back from there: right values, a star of traffic."""

from __future__ import annotations

import torch.distributed as dist

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.traffic",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _launch(self, bucket: right.Bucket) -> None:
        bucket.load()
        dist.reduce(bucket.flat, dst=0, group=self._group)
        bucket.work = dist.broadcast(bucket.flat, src=0, group=self._group, async_op=True)
        self._num_launched += 1
