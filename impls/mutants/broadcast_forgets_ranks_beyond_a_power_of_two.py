"""The tree has floor(log2 N) levels, so some ranks keep their own tensor."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403

BREAKS = ("collectives.values.broadcast",)


def tree_broadcast(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, src: int = 0) -> Tensor:
    """The root's tensor."""
    place = (rank - src) % world_size
    for distance in [1 << level for level in reversed(range(world_size.bit_length() - 1))]:
        if place % (2 * distance) == distance and place < 1 << (world_size.bit_length() - 1):
            tensor = mesh.recv((rank - distance) % world_size)
        elif place % (2 * distance) == 0 and place + distance < 1 << (world_size.bit_length() - 1):
            mesh.send((rank + distance) % world_size, tensor)
    return tensor.clone()
