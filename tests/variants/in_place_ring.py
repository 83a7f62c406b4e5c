"""Works in place and returns None; the ring runs the other way, and chunks are sent before anything is copied."""

from __future__ import annotations


def _ring(mesh, rank, n, chunks, first, steps, adds):
    """`steps` steps to the left: chunk `first` leaves first, and each rank passes on what it got."""
    for step in range(steps):
        mesh.send((rank - 1) % n, chunks[(first + step) % n])
        arrived = mesh.recv((rank + 1) % n)
        mine = chunks[(first + step + 1) % n]
        mine.copy_(mine + arrived if adds else arrived)


def ring_allreduce(mesh, rank, world_size, tensor):
    flat = tensor.contiguous().view(-1)  # tensor's own memory when that is dense
    chunks = flat.tensor_split(world_size)
    _ring(mesh, rank, world_size, chunks, rank, world_size - 1, adds=True)
    _ring(mesh, rank, world_size, chunks, (rank - 1) % world_size, world_size - 1, adds=False)
    if not tensor.is_contiguous():
        tensor.copy_(flat.view(tensor.shape))


def ring_reduce_scatter(mesh, rank, world_size, tensor):
    chunks = [chunk.clone() for chunk in tensor.reshape(-1).tensor_split(world_size)]
    _ring(mesh, rank, world_size, chunks, (rank + 1) % world_size, world_size - 1, adds=True)
    return chunks[rank]


def ring_allgather(mesh, rank, world_size, tensor):
    parts = [tensor.reshape(-1).clone() for _ in range(world_size)]
    _ring(mesh, rank, world_size, parts, rank, world_size - 1, adds=False)
    return parts


def tree_broadcast(mesh, rank, world_size, tensor, src):
    place = (rank - src) % world_size
    distance = 1
    while distance < world_size:
        if place < distance:
            if place + distance < world_size:
                mesh.send((rank + distance) % world_size, tensor)
        elif place < 2 * distance:
            tensor.copy_(mesh.recv((rank - distance) % world_size))
        distance *= 2
