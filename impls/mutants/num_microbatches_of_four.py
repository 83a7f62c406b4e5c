"""NUM_MICROBATCHES is 4."""

from __future__ import annotations

from impls.reference import *  # noqa: F403

BREAKS = ("defaults.num-microbatches",)


NUM_MICROBATCHES = 4
