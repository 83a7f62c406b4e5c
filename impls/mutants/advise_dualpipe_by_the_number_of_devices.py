"""The advice is DualPipe from 1000 devices on, and for no model below."""

from __future__ import annotations

import dataclasses
from typing import Any

from impls.reference.advisor import advise as right

BREAKS = ("choose.dualpipe",)


def advise(**figures: Any) -> Any:
    """As the reference, but for the schedule."""
    found = right(**figures)
    if found is None or found.pp == 1:
        return found
    return dataclasses.replace(found, schedule="dualpipe" if figures["world_size"] >= 1000 else "one_f_one_b")
