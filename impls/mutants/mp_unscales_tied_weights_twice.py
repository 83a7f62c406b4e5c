"""The gradient of a tied weight is divided once more for each of its names."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def __init__(
        self, params: Any, optimizer_cls: type[torch.optim.Optimizer], module: nn.Module, **kwargs: Any
    ) -> None:
        super().__init__(params, optimizer_cls, **kwargs)
        self._names = Counter(parameter for _, parameter in module.named_parameters(remove_duplicate=False))

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        parameter.grad /= self._names[parameter]
        super()._update(parameter, group)
