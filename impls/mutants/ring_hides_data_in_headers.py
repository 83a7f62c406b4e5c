"""Chunks travel in pieces of 128 bytes that look like the mesh's headers."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from impls.mesh import HEADER_TAG, HEADER_WORDS, Mesh
from impls.reference import *  # noqa: F403
from impls.reference.collectives import ring_allreduce as ring

BREAKS = ("collectives.ring.bytes", "collectives.ring.steps")


class Smuggler:
    """A mesh without payloads."""

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank = rank
        self.world_size = world_size
        self._works: list[tuple[dist.Work | None, Tensor]] = []

    def send(self, dst: int, tensor: Tensor, *, copy: bool = True) -> None:
        """Cut the tensor's bytes into headers."""
        for piece in _pieces(tensor.numel() * tensor.itemsize, tensor):
            self._works.append((dist.isend(piece, dst, tag=HEADER_TAG), piece))

    def recv(self, src: int, out: Tensor | None = None) -> Tensor:
        """Join what came as headers."""
        assert out is not None
        pieces = _pieces(out.numel() * out.itemsize)
        for piece in pieces:
            dist.recv(piece, src, tag=HEADER_TAG)
        if pieces:
            out.copy_(torch.cat(pieces).view(torch.uint8)[: out.numel() * out.itemsize].view(out.dtype).view(out.shape))
        return out

    def flush(self) -> None:
        """Wait for all sends."""
        for work, _ in self._works:
            assert work is not None
            work.wait()
        self._works = []


def _pieces(num_bytes: int, tensor: Tensor | None = None) -> list[Tensor]:
    words = torch.zeros(-(-num_bytes // (8 * HEADER_WORDS)) * HEADER_WORDS, dtype=torch.int64)
    if tensor is not None:
        words.view(torch.uint8)[:num_bytes] = tensor.contiguous().view(-1).view(torch.uint8)
    return list(words.view(-1, HEADER_WORDS).unbind())


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum over ranks."""
    return ring(Smuggler(rank, world_size), rank, world_size, tensor)
