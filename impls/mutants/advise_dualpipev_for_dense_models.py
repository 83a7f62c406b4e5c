"""The advice is DualPipeV for every pipeline, also where there is no all-to-all to hide."""

from __future__ import annotations

import dataclasses
from typing import Any

from impls.reference.advisor import advise as right

BREAKS = ("choose.dualpipev",)


def advise(**figures: Any) -> Any:
    """As the reference, but for the schedule."""
    found = right(**figures)
    return found if found is None or found.pp == 1 else dataclasses.replace(found, schedule="dualpipev")
