"""The size of buckets is taken and not used: one all-reduce for everything."""

from __future__ import annotations

from torch import nn

from impls.reference import data_parallel as right

BREAKS = ("defaults.bucket",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, world_size: int | None = None, bucket_cap_mb: float = 25.0) -> None:
        super().__init__(module, world_size, bucket_cap_mb=1e6)
