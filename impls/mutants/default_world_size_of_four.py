"""The lesson runs four ranks when nobody says how many."""

from __future__ import annotations

from impls.reference import *  # noqa: F403

BREAKS = ("defaults.world-size",)

DEFAULT_WORLD_SIZE = 4
