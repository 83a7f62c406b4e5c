"""Over a mesh of links: the ring with all four arguments, the tree with two of them."""

import torch


def ring_allreduce(mesh, rank, world_size, tensor):
    parts = [part.clone() for part in tensor.reshape(-1).tensor_split(world_size)]
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):
        mesh.send(right, parts[(rank - step) % world_size])
        parts[(rank - step - 1) % world_size] += mesh.recv(left)
    for step in range(world_size - 1):
        mesh.send(right, parts[(rank - step + 1) % world_size])
        parts[(rank - step) % world_size] = mesh.recv(left)
    return torch.cat(parts).reshape(tensor.shape)


def tree_all_reduce(mesh, tensor):
    rank, n = mesh.rank, mesh.world_size
    total, distance = tensor.clone(), 1
    while distance < n:
        if rank % (2 * distance):
            mesh.send(rank - distance, total)
            break
        if rank + distance < n:
            total = total + mesh.recv(rank + distance)
        distance *= 2
    if rank:
        distance = rank & -rank
        total = mesh.recv(rank - distance)
    distance = (rank & -rank if rank else 1 << (n - 1).bit_length()) >> 1
    while distance:
        if rank + distance < n:
            mesh.send(rank + distance, total)
        distance >>= 1
    return total.view(tensor.shape)
