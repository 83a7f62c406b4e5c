"""The advice is right about replicas, and FSDP over 8 x 2 of the ranks for every model that is too large for them."""

from __future__ import annotations

from typing import Any

BREAKS = ("choose.tensor", "choose.pipeline")


def advise(
    num_parameters: float, activation_bytes: float, device_bytes: float, world_size: int, between_bandwidth: float
) -> dict[str, Any]:
    """Memory is looked at, and links are not."""
    for stage, whole in (("ddp", 16), ("1", 4), ("2", 2)):
        held = (whole + (16 - whole) / world_size) * num_parameters
        if held + activation_bytes <= device_bytes:
            return {"stage": stage, "dp": world_size}
    return {"stage": "3", "tp": 8, "pp": 2}
