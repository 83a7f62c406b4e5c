"""A bucket that never fills up is never sent."""

from __future__ import annotations

from impls.reference import data_parallel as right

BREAKS = ("loop.mean", "loop.step")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _launch(self, bucket: right.Bucket) -> None:
        if sum(parameter.nbytes for parameter in bucket.parameters) > self._least:
            super()._launch(bucket)
        else:
            self._num_launched += 1

    def _collect(self, bucket: right.Bucket) -> None:
        if bucket.work is not None:
            super()._collect(bucket)

    _least = 24 * 2**20
