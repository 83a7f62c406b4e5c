"""The hook waits for its all-reduce before backward may go on."""

from __future__ import annotations

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.link",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _launch(self, bucket: right.Bucket) -> None:
        super()._launch(bucket)
        assert bucket.work is not None
        bucket.work.wait()
