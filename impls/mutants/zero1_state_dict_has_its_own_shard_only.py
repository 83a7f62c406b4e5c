"""ZeRO-1: the state dict has this rank's moments, and zeros in the place of the others'."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from impls.reference import zero1 as right

BREAKS = ("zero.equivalence",)


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def state_dict(self) -> dict[str, Any]:
        """Whole in shape only."""
        whole = super().state_dict()
        for parameter, number in self._numbers(whole).items():
            pieces = [piece for flat in self._flats for piece in flat.pieces if piece.parameter is parameter]
            own = torch.zeros(parameter.numel(), dtype=torch.bool)
            for piece in pieces:
                own[piece.begin : piece.end] = True
            for value in whole["state"].get(number, {}).values():
                if isinstance(value, Tensor) and value.shape == parameter.shape and value.dim():
                    value[~own.view(parameter.shape)] = 0
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """On each rank its own, which is right on as many ranks as before."""
        super().load_state_dict(state_dict)
