"""The advice is tensor parallelism over 8 ranks in each of 2 stages for every model."""

from __future__ import annotations

BREAKS = ("choose.ddp", "choose.fsdp", "choose.zero1", "choose.zero23", "choose.tensor", "choose.pipeline")


def advise(**_: object) -> dict[str, object]:
    """One answer for all."""
    return {"tp": 8, "pp": 2}
