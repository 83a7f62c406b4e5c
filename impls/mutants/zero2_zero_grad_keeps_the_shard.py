"""ZeRO-2: zero_grad() clears .grad, which is None anyway, and not the shard; only step() does."""

from __future__ import annotations

import torch

from impls.reference import zero2 as right

BREAKS = ("zero.equivalence",)


class Zero2Optimizer(right.Zero2Optimizer):
    """As the reference, but for the fault."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget what nobody has."""
        torch.optim.Optimizer.zero_grad(self, set_to_none)
        self._num_reduced = 0
        self._is_in_backward = self._is_synced = self._has_reduced = False

    def _end_step(self) -> None:
        super()._end_step()
        for flat in self._flats:
            flat.forget()
