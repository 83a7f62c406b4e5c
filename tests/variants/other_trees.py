"""Trees that are not rooted at rank 0: one whose root is the last rank, and recursive doubling, which has no root."""

from __future__ import annotations

import torch


def tree_allreduce(mesh, rank, world_size, tensor):
    """Binomial, rooted at the last rank; goes up and down by distance 1, 2, 4, ... in places counted from the root."""
    place = world_size - 1 - rank
    total = tensor.clone()
    distances = [1 << level for level in range((world_size - 1).bit_length())]
    for distance in distances:
        if place % (2 * distance):
            mesh.send(rank + distance, total)
            break
        if place + distance < world_size:
            total = total + mesh.recv(rank - distance)
    for distance in reversed(distances):
        if place % (2 * distance) == distance:
            total = mesh.recv(rank + distance)
        elif place % (2 * distance) == 0 and place + distance < world_size:
            mesh.send(rank - distance, total)
    return total


def tree_broadcast(mesh, rank, world_size, tensor, root=0):
    """Halves of a range: whoever has the tensor hands it to the middle of the rest."""
    low, high, place = 0, world_size, (rank - root) % world_size
    value = tensor
    while high - low > 1:
        middle = (low + high + 1) // 2
        if place == low:
            mesh.send((middle + root) % world_size, value)
        elif place == middle:
            value = mesh.recv((low + root) % world_size)
        low, high = (low, middle) if place < middle else (middle, high)
    return torch.clone(value)


def all_reduce(mesh, rank, world_size, tensor):
    """Recursive doubling; ranks beyond the largest power of two hand over to a partner and get the sum back."""
    inside = 1 << (world_size.bit_length() - 1)
    total = tensor.clone()
    if rank >= inside:
        mesh.send(rank - inside, total)
        return mesh.recv(rank - inside)
    if rank + inside < world_size:
        total = total + mesh.recv(rank + inside)
    distance = 1
    while distance < inside:
        mesh.send(rank ^ distance, total)
        total = total + mesh.recv(rank ^ distance)
        distance *= 2
    if rank + inside < world_size:
        mesh.send(rank + inside, total)
    return total
