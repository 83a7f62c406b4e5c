"""The optimizer's moments are kept in bfloat16."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence", "memory.mixed-16p", "memory.mixed-7b", "memory.adam-states")


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        for state in self._inner.state.values():
            state.update({name: value.float() for name, value in state.items() if isinstance(value, Tensor)})
        super()._update(parameter, group)
        for state in self._inner.state.values():
            state.update({name: state[name].bfloat16() for name in ("exp_avg", "exp_avg_sq") if name in state})
