"""A pass under no_grad between forward and backward switches the reduction off."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from impls.reference import data_parallel as right

BREAKS = ("loop.mean",)


class DataParallel(right.DataParallel):
    """As the reference, but for the fault: the latest forward decides whether backward reduces."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own forward pass."""
        self._armed = torch.is_grad_enabled()
        return super().forward(*args, **kwargs)

    def _on_gradient(self, parameter: Tensor) -> None:
        if self._armed:
            super()._on_gradient(parameter)

    def sync_grads(self) -> None:
        """Nothing, where the latest pass was one without gradients."""
        if self._armed:
            super().sync_grads()
