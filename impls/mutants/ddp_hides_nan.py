"""Gradients that are NaN or infinite become finite numbers, so that nobody skips the step."""

from __future__ import annotations

from impls.reference.data_parallel import DataParallel as Whole

BREAKS = ("loop.mean",)


class DataParallel(Whole):
    """Cleans up after each reduction."""

    def sync_grads(self) -> None:
        """Reduce, and add the fault."""
        super().sync_grads()
        for parameter in self._bucket_of:
            if parameter.grad is not None:
                parameter.grad.nan_to_num_()
