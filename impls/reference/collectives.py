"""Collectives from nothing but send and recv: ring all-reduce, tree all-reduce, and the pieces they are made of.

N = ``world_size``, T = bytes of the full tensor. Every function is called by all ranks at once, leaves its input as it
was, returns new memory unless told otherwise, and gives all ranks the same bits: each sum is formed in one place and
copied from there. A sum is torch's ``+`` in the tensor's own dtype: integers wrap around, bool is logical or.

    ring all-reduce       2T(N-1)/N bytes sent per rank    2(N-1) steps          large T
    tree all-reduce       at most T ceil(log2 N)           2 ceil(log2 N) steps  small T
    ring reduce-scatter   T(N-1)/N                         N-1 steps
    ring all-gather       T(N-1)/N                         N-1 steps

Sources: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009), for the
ring; Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005), for both.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from impls.mesh import Mesh


def ring_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, out: Tensor | None = None) -> Tensor:
    """Sum of every rank's `tensor`, same shape: a ring reduce-scatter, then a ring all-gather of the reduced chunks.

    The sum is written into `out` where that is given (contiguous, like `tensor`; it may be `tensor` itself).
    """
    total = torch.empty(tensor.shape, dtype=tensor.dtype) if out is None else out
    chunks = total.view(-1).tensor_split(world_size)  # N views of [numel/N], sizes differ by at most one
    left, right = _neighbours(rank, world_size)

    _reduce_around_ring(mesh, rank, world_size, tensor, chunks)  # now chunks[rank] is the full sum on this rank
    for step in range(world_size - 1):
        # Chunk `rank` sets out from its owner and every rank passes on what it got last.
        mesh.push(right, chunks[(rank - step) % world_size])
        mesh.pull(left, chunks[(rank - step - 1) % world_size])
    mesh.flush()  # the caller may write into what we return only after our neighbour has taken it
    return total


def ring_reduce_scatter(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, in_place: bool = False) -> Tensor:
    """This rank's part of the sum: chunk `rank` of the flat sum as ``torch.tensor_split`` cuts it. [about numel/N]

    With `in_place` the sums are formed in `tensor` (contiguous), which saves as much memory; the part is a view of it.
    """
    chunks = list(_flat(tensor).tensor_split(world_size))
    if not in_place:
        chunks = [torch.empty_like(chunk) for chunk in chunks]
    _reduce_around_ring(mesh, rank, world_size, tensor, chunks)
    mesh.flush()
    return chunks[rank]


def ring_allgather(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Every rank's flat `tensor`, one after the other in rank order. Sizes may differ between ranks. [sum of numel]"""
    left, right = _neighbours(rank, world_size)
    parts = [_flat_copy(tensor)] * world_size
    for step in range(world_size - 1):
        mesh.send(right, parts[(rank - step) % world_size])
        parts[(rank - step - 1) % world_size] = mesh.recv(left)
    gathered = torch.cat(parts)
    mesh.flush()
    return gathered


def tree_allreduce(mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Sum of every rank's `tensor`, same shape: up a binomial tree to rank 0, and down again."""
    total = _flat_copy(tensor)
    arrived = torch.empty_like(total)
    for distance in _doubling(world_size):
        if rank % (2 * distance):  # a multiple of `distance`, as it is still here: hand over to the parent
            mesh.push(rank - distance, total)
            break
        if rank + distance < world_size:
            total += mesh.pull(rank + distance, arrived)
    return _down_the_tree(mesh, rank, world_size, total, root=0).view(tensor.shape)


def tree_broadcast(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, src: int = 0) -> Tensor:
    """Rank `src`'s `tensor` on every rank. The others' `tensor` gives shape and dtype; its values do not matter."""
    if not 0 <= src < world_size:
        raise ValueError(f"there is no rank {src} among {world_size} to broadcast from")
    return _down_the_tree(mesh, rank, world_size, _flat_copy(tensor), src).view(tensor.shape)


def _reduce_around_ring(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, chunks: Sequence[Tensor]) -> None:
    """Add up chunk c on its way around the ring c+1, c+2, ..., c, so that rank r ends with the full sum in `chunks[r]`.

    The other `chunks` are left with sums of some ranks or untouched. Pushing without a copy is safe: a chunk that was
    pushed is next written when its full sum comes back, and that sum contains what we pushed, so it was taken long ago.
    """
    left, right = _neighbours(rank, world_size)
    own = _flat(tensor).tensor_split(world_size)  # what this rank contributes
    if world_size == 1:
        chunks[0].copy_(own[0])
    outgoing = own[rank - 1]
    arrived = torch.empty_like(own[0])  # chunk 0 is one of the longest
    for step in range(world_size - 1):
        mesh.push(right, outgoing)
        index = (rank - step - 2) % world_size
        mesh.pull(left, arrived[: own[index].numel()])
        outgoing = torch.add(own[index], arrived[: own[index].numel()], out=chunks[index])


def _down_the_tree(mesh: Mesh, rank: int, world_size: int, tensor: Tensor, root: int) -> Tensor:
    """Spread `root`'s tensor: at distance N/2, N/4, ..., 1 whoever has it hands it to the rank that far ahead."""
    place = (rank - root) % world_size  # the tree is drawn as if `root` were rank 0
    for distance in reversed(_doubling(world_size)):
        if place % (2 * distance) == distance:
            mesh.pull((rank - distance) % world_size, tensor)
        elif place % (2 * distance) == 0 and place + distance < world_size:
            mesh.push((rank + distance) % world_size, tensor)
    mesh.flush()
    return tensor


def _doubling(world_size: int) -> list[int]:
    """1, 2, 4, ... below N: the distances of the ceil(log2 N) steps of a binomial tree."""
    return [1 << step for step in range((world_size - 1).bit_length())]


def _neighbours(rank: int, world_size: int) -> tuple[int, int]:
    return (rank - 1) % world_size, (rank + 1) % world_size


def _flat(tensor: Tensor) -> Tensor:
    """`tensor` as one dimension, element after element in memory; a copy only where it is not so already. [numel]"""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1)


def _flat_copy(tensor: Tensor) -> Tensor:
    """`tensor` as one dimension of new memory, whatever its strides. [numel]"""
    return tensor.detach().clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg().view(-1)
