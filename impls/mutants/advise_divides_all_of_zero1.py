"""The advice takes 16P/N for the memory of ZeRO-1."""

from __future__ import annotations

from typing import Any

from impls.reference.advisor import advise as right

BREAKS = ("choose.zero1",)


def advise(**figures: Any) -> Any:
    """ZeRO-1 wherever the sixteenth bytes of N ranks fit."""
    share = 16 * figures["num_parameters"] / figures["world_size"] + figures["activation_bytes"]
    whole = 16 * figures["num_parameters"] + figures["activation_bytes"]
    if share <= figures["device_bytes"] < whole:
        return {"stage": "1", "dp": figures["world_size"]}
    return right(**figures)
