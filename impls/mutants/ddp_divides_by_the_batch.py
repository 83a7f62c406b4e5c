"""Gradients are divided by N times the number of rows, as if the loss were a sum."""

from __future__ import annotations

from typing import Any

import torch

from impls.reference import data_parallel as right

BREAKS = ("loop.mean",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    num_rows = 1

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass."""
        self.num_rows = len(args[0])
        return super().forward(*args, **kwargs)

    def _collect(self, bucket: right.Bucket) -> None:
        super()._collect(bucket)
        with torch.no_grad():
            for parameter in bucket.parameters:
                if parameter.grad is not None:
                    parameter.grad /= self.num_rows
