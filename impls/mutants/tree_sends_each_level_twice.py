"""Every message of the tree is sent twice, in case the first is lost."""

from __future__ import annotations

from torch import Tensor

from impls.mesh import Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import tree_allreduce as tree

BREAKS = ("collectives.tree.bytes", "collectives.tree.steps")


class Twice:
    """A mesh that repeats itself."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.rank = mesh.rank
        self.world_size = mesh.world_size

    def send(self, dst: int, tensor: Tensor, *, copy: bool = True) -> None:
        """Send twice."""
        self.mesh.send(dst, tensor)
        self.mesh.send(dst, tensor)

    def recv(self, src: int, out: Tensor | None = None) -> Tensor:
        """Receive twice."""
        self.mesh.recv(src)
        return self.mesh.recv(src, out)

    def push(self, dst: int, tensor: Tensor) -> None:
        """Push twice."""
        self.mesh.push(dst, tensor)
        self.mesh.push(dst, tensor)

    def pull(self, src: int, out: Tensor) -> Tensor:
        """Pull twice."""
        self.mesh.pull(src, out)
        return self.mesh.pull(src, out)

    def flush(self) -> None:
        """Wait until nothing is lent."""
        self.mesh.flush()


def tree_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    return tree(Twice(mesh), rank, world_size, tensor)
