"""After an exception inside no_sync() nothing is reduced any more."""

from __future__ import annotations

import contextlib

from impls.reference.data_parallel import DataParallel as Whole

BREAKS = ("loop.mean",)


class DataParallel(Whole):
    """Without a ``finally``."""

    @contextlib.contextmanager
    def no_sync(self):
        """Accumulate only."""
        self._reducing = False
        yield
        self._reducing = True
