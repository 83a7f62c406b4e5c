"""The advice cuts matrices until the states fit, however many nodes a group then spans."""

from __future__ import annotations

from typing import Any

from impls.reference.advisor import advise as right

BREAKS = ("choose.tensor",)


def advise(**figures: Any) -> Any:
    """A tensor-parallel degree that holds 16 bytes per parameter."""
    tp = 1
    while tp < figures["world_size"] and 16 * figures["num_parameters"] / tp > 0.8 * figures["device_bytes"]:
        tp *= 2
    return {"stage": "ddp", "dp": figures["world_size"] // tp, "tp": tp} if tp > 1 else right(**figures)
