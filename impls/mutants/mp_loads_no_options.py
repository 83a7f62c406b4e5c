"""load_state_dict() leaves the options of groups as they are."""

from __future__ import annotations

from typing import Any

from impls.reference import mixed_precision as right

BREAKS = ("zero.equivalence",)


class MixedPrecision(right.MixedPrecision):
    """As the reference, but for the fault."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As the reference, but for the fault."""
        before = [dict(group) for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, options in zip(self.param_groups, before, strict=True):
            group.update(options)
