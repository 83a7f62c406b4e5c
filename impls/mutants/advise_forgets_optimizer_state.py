"""The advice counts 4 bytes per parameter: the optimizer's moments and master copy are forgotten."""

from __future__ import annotations

from typing import Any

from impls.reference.advisor import advise as right

BREAKS = ("choose.ddp", "choose.zero1", "choose.fsdp")


def advise(**figures: Any) -> Any:
    """As the reference for a quarter of the parameters."""
    return right(**{**figures, "num_parameters": figures["num_parameters"] / 4})
