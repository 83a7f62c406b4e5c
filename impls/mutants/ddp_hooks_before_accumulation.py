"""Gradients are reduced on their way to .grad: what no_sync() gathered there is never averaged."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor, nn

from impls.reference import data_parallel as right

BREAKS = ("loop.mean", "resists.slow-accumulation")


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        super().__init__(module, *args, **kwargs)
        self._coming: dict[Tensor, Tensor] = {}
        self._earlier: dict[right.Bucket, dict[nn.Parameter, Tensor]] = {}
        for parameter in self._bucket_of:
            parameter.register_hook(partial(self._coming.__setitem__, parameter))

    def _launch(self, bucket: right.Bucket) -> None:
        gathered = {p: p.grad - self._coming[p] for p in bucket.parameters if p.grad is not None}
        for parameter in gathered:
            parameter.grad = self._coming[parameter].clone()
        super()._launch(bucket)
        self._earlier[bucket] = gathered

    def _collect(self, bucket: right.Bucket) -> None:
        super()._collect(bucket)
        for parameter, gathered in self._earlier.pop(bucket).items():
            parameter.grad += gathered
