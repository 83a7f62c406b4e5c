"""The masters are made with the optimizer: weights that are loaded into the module later are overwritten by them."""

from __future__ import annotations

from typing import Any

import torch

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def __init__(
        self, params: Any, optimizer_cls: type[torch.optim.Optimizer], master: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(params, optimizer_cls, master=master, **kwargs)
        for parameter in self._parameters() if master else ():
            self._in_fp32(parameter)
