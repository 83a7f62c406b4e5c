"""An overflow is told to the neighbours only: right on up to three ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _overflows_anywhere(self) -> bool:
        mine = torch.tensor([float(not all(gradient.isfinite().all() for gradient in self._gradients()))])
        flags = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(flags, mine)
        return any(bool(flags[(dist.get_rank() + place) % len(flags)]) for place in (-1, 0, 1))
