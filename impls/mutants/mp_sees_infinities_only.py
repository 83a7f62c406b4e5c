"""A nan among the gradients does not count as an overflow."""

from __future__ import annotations

import torch
import torch.distributed as dist

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _overflows_anywhere(self) -> bool:
        flag = torch.tensor([float(any(grad.isinf().any() for grad in self._gradients()))])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX, group=self._group)
        return bool(flag)
