"""The messages of a collective that is written over a mesh, recorded rank by rank without any other rank.

Works for what only pushes and pulls (shape and dtype known on both sides), as the reference's rings and trees do: what
a rank does then depends on nothing that others send.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from impls.reference.network.messages import Program, Recv, Send

Collective = Callable[..., object]  # (mesh, rank, world_size, tensor)


class RecordingMesh:
    """One rank's end of a mesh that notes what is asked of it and moves nothing."""

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank = rank
        self.world_size = world_size
        self.program: list[Send | Recv] = []

    def push(self, dst: int, tensor: Tensor) -> None:
        """See `impls.mesh.Mesh.push`."""
        self.program.append(Send(dst, tensor.nbytes))

    def pull(self, src: int, out: Tensor) -> Tensor:
        """See `impls.mesh.Mesh.pull`; `out` keeps the values that it has."""
        self.program.append(Recv(src))
        return out

    def flush(self) -> None:
        """See `impls.mesh.Mesh.flush`."""


def record(collective: Collective, world_size: int, rank: int, num_bytes: int) -> Program:
    """What rank `rank` of `world_size` sends and receives in one call on a tensor of `num_bytes` bytes."""
    mesh = RecordingMesh(rank, world_size)
    collective(mesh, rank, world_size, torch.zeros(num_bytes, dtype=torch.uint8))
    return mesh.program


def record_all(collective: Collective, world_size: int, num_bytes: int) -> Sequence[Program]:
    """`record` for every rank."""
    return [record(collective, world_size, rank, num_bytes) for rank in range(world_size)]


def relative(program: Program, rank: int, world_size: int) -> Program:
    """The same with peers counted from `rank`: equal on all ranks if the collective is a ring."""
    return [
        Send((step.dst - rank) % world_size, step.num_bytes, step.stream)
        if isinstance(step, Send)
        else Recv((step.src - rank) % world_size, step.stream)
        for step in program
    ]
