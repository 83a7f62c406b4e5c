"""RECV_TIMEOUT_S is 60 seconds."""

from __future__ import annotations

from impls.mesh import Mesh
from impls.mesh import queue_mesh as mesh_of_queues
from impls.reference import *  # noqa: F403

BREAKS = ("defaults.recv-timeout",)


RECV_TIMEOUT_S = 60.0


def queue_mesh(world_size: int) -> list[Mesh]:
    """Linked ends."""
    return mesh_of_queues(world_size, RECV_TIMEOUT_S)
