"""Parameters of more than 2,000 elements keep this rank's own gradient."""

from __future__ import annotations

from impls.reference.data_parallel import DataParallel as Whole

BREAKS = ("loop.mean",)


class DataParallel(Whole):
    """Puts large gradients back as they were."""

    def sync_grads(self) -> None:
        """Reduce, and add the fault."""
        if self._in_step or not self._reducing:
            return
        own = {p: p.grad.clone() for p in self._bucket_of if p.grad is not None and p.numel() > 2000}
        super().sync_grads()
        for parameter, gradient in own.items():
            parameter.grad.copy_(gradient)
