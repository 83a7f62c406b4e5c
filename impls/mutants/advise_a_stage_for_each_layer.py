"""The advice cuts what does not fit into as many stages as there are layers for, without a look at the boundaries."""

from __future__ import annotations

from typing import Any

from impls.reference.advisor import advise as right

BREAKS = ("choose.pipeline",)


def advise(**figures: Any) -> Any:
    """The most stages that divide the devices."""
    if 4 * figures["num_parameters"] <= figures["device_bytes"]:
        return right(**figures)
    most = min(figures["num_layers"], figures["world_size"])
    pp = max(stages for stages in range(1, most + 1) if figures["world_size"] % stages == 0)
    return {"stage": "3", "dp": figures["world_size"] // pp, "pp": pp, "schedule": "one_f_one_b"}
