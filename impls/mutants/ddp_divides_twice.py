"""Gradients are divided by N before the sum and after it."""

from __future__ import annotations

import torch

from impls.reference import data_parallel as right

BREAKS = ("loop.mean", "faq.mean-not-sum", "resists.sum-without-divide")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def _collect(self, bucket: right.Bucket) -> None:
        super()._collect(bucket)
        with torch.no_grad():
            for parameter in bucket.parameters:
                if parameter.grad is not None:
                    parameter.grad /= self.world_size
