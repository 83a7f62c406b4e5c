"""ZeRO-1: Adam's moments are kept in bfloat16."""

from __future__ import annotations

from impls.reference import zero1 as right

BREAKS = ("memory.adam-states", "memory.zero1-5.5p")


class ShardedOptimizer(right.ShardedOptimizer):
    """As the reference, but for the fault."""

    def _update(self, flat: right.Flat) -> None:
        states = self._inner[flat].state
        for state in states.values():
            state.update({name: state[name].float() for name in ("exp_avg", "exp_avg_sq") if name in state})
        super()._update(flat)
        for state in states.values():
            state.update({name: state[name].bfloat16() for name in ("exp_avg", "exp_avg_sq") if name in state})
