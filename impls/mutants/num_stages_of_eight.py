"""NUM_STAGES is 8."""

from __future__ import annotations

from impls.reference import *  # noqa: F403

BREAKS = ("defaults.num-stages",)


NUM_STAGES = 8
