"""Gradients are reduced inside no_sync() as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.traffic", "zero.comm.ddp", "resists.slow-accumulation")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """No difference."""
        yield
