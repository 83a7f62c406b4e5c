"""Every rank gathers all ranks' gradients and adds them up itself: right values, N times the bytes."""

from __future__ import annotations

import torch
import torch.distributed as dist

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.traffic", "zero.comm.ddp", "zero.torch-name.ddp")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _launch(self, bucket: right.Bucket) -> None:
        bucket.load()
        parts = [torch.empty_like(bucket.flat) for _ in range(self.world_size)]
        work = dist.all_gather(parts, bucket.flat, group=self._group, async_op=True)
        assert work is not None
        work.wait()
        bucket.flat.copy_(torch.stack(parts).sum(0))
        bucket.work = work
        self._num_launched += 1
