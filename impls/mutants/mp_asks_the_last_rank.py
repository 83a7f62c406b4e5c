"""Whether there was an overflow is what the last rank says."""

from __future__ import annotations

import torch
import torch.distributed as dist

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _overflows_anywhere(self) -> bool:
        flag = torch.zeros(1)
        for gradient in self._gradients():
            flag.logical_or_(gradient.isfinite().all().logical_not())
        dist.broadcast(flag, src=dist.get_world_size() - 1)
        return bool(flag)
