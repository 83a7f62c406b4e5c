"""The lesson asks for nccl when nobody names a backend."""

from __future__ import annotations

from impls.reference import *  # noqa: F403

BREAKS = ("defaults.backend",)

DEFAULT_BACKEND = "nccl"
