"""The advice counts parameters, gradients and optimizer state, and no activations."""

from __future__ import annotations

from typing import Any

from impls.reference.advisor import Advice
from impls.reference.advisor import advise as right

BREAKS = ("choose.ddp",)


def advise(**figures: Any) -> Advice | None:
    """As the reference, without activations."""
    return right(**{**figures, "activation_bytes": 0.0})
