"""Whatever group it is given, all ranks are averaged."""

from __future__ import annotations

from impls.reference.data_parallel import BUCKET_CAP_MB
from impls.reference.data_parallel import DataParallel as Whole

BREAKS = ("loop.mean",)


class DataParallel(Whole):
    """Takes a group and forgets it."""

    def __init__(self, module, group=None, bucket_cap_mb=BUCKET_CAP_MB):
        super().__init__(module, bucket_cap_mb=bucket_cap_mb)
