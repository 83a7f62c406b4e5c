"""The advice is ZeRO-2 for every model."""

from __future__ import annotations

BREAKS = ("choose.ddp", "choose.fsdp", "choose.zero1", "choose.zero23", "choose.tensor", "choose.pipeline")


def advise(**_: object) -> str:
    """One answer for all."""
    return "ZeRO-2"
