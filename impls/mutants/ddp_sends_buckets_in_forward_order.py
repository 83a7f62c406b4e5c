"""Buckets set out in the order of the forward pass, so that all wait for the last gradient."""

from __future__ import annotations

from typing import Any

from torch import nn

from impls.reference import data_parallel as right

BREAKS = ("strategies.ddp.link",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault."""

    def __init__(self, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        super().__init__(module, *args, **kwargs)
        self._buckets.reverse()
