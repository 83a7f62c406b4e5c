"""Buckets of past steps are kept for ever."""

from __future__ import annotations

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.memory", "strategies.ddp.cost")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _collect(self, bucket: right.Bucket) -> None:
        super()._collect(bucket)
        self.__dict__.setdefault("kept", []).append(bucket.flat.clone())
