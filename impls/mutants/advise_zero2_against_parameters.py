"""The advice is ZeRO-2 as soon as the parameters alone are too large for a device."""

from __future__ import annotations

from typing import Any

from impls.reference.advisor import advise as right

BREAKS = ("choose.zero23", "choose.fsdp")


def advise(**figures: Any) -> Any:
    """ZeRO-2 for what is too large."""
    if 2 * figures["num_parameters"] > 0.5 * figures["device_bytes"]:
        return {"stage": "2", "dp": figures["world_size"]}
    return right(**figures)
