"""Only the wrapper that was made last reduces: all share one place for it."""

from __future__ import annotations

from impls.reference.data_parallel import DataParallel as Whole

BREAKS = ("loop.mean",)


class DataParallel(Whole):
    """Remembers itself in its class."""

    latest = None

    def __init__(self, module, world_size=None, group=None, bucket_cap_mb=25.0):
        super().__init__(module, world_size, group, bucket_cap_mb)
        DataParallel.latest = id(self)

    def sync_grads(self) -> None:
        """Reduce, and add the fault."""
        if DataParallel.latest == id(self):
            super().sync_grads()
