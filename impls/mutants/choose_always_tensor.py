"""The advice is tensor parallelism over 8 ranks for every model."""

from __future__ import annotations

BREAKS = ("choose.ddp", "choose.fsdp", "choose.zero1", "choose.zero23", "choose.tensor", "choose.pipeline")


def advise(**_: object) -> dict[str, object]:
    """One answer for all."""
    return {"stage": "ddp", "tp": 8}
