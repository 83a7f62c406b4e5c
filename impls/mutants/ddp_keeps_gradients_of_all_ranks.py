"""Each rank keeps a gathered copy of every rank's gradients after they are reduced."""

from __future__ import annotations

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.memory", "strategies.ddp.cost", "zero.memory.ddp", "zero.saving.ddp")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _collect(self, bucket: right.Bucket) -> None:
        super()._collect(bucket)
        self.__dict__.setdefault("kept", {})[bucket] = [bucket.flat.clone() for _ in range(self.world_size)]
