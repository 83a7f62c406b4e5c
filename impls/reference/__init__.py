"""The reference implementation of every block, written to be read."""

from __future__ import annotations

from impls.mesh import RECV_TIMEOUT_S, GlooMesh, queue_mesh
from impls.reference.collectives import (
    ring_allgather,
    ring_allreduce,
    ring_reduce_scatter,
    tree_allreduce,
    tree_broadcast,
)

__all__ = [
    "RECV_TIMEOUT_S",
    "GlooMesh",
    "queue_mesh",
    "ring_allgather",
    "ring_allreduce",
    "ring_reduce_scatter",
    "tree_allreduce",
    "tree_broadcast",
]
