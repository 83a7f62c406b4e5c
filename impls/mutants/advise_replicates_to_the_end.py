"""The advice is plain data parallelism as long as all devices together have the memory for one replica."""

from __future__ import annotations

from typing import Any

from impls.reference.advisor import advise as right

BREAKS = ("choose.fsdp", "choose.zero1")


def advise(**figures: Any) -> Any:
    """Replicas as long as the sum of all devices' memory is enough for one."""
    if 16 * figures["num_parameters"] <= figures["world_size"] * figures["device_bytes"]:
        return {"stage": "ddp", "dp": figures["world_size"]}
    return right(**figures)
