"""What microbatches gathered inside no_sync() is thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from impls.reference import data_parallel as right

BREAKS = ("loop.mean", "memory.effective-batch", "resists.slow-accumulation")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Forget at the end."""
        with super().no_sync():
            yield
        self.zero_grad(set_to_none=True)
