"""One frequent fault in each function: the result is as a student's first version has it."""

import torch
import torch.distributed as dist


def all_reduce(tensor):
    """The mean in place of the sum."""
    dist.all_reduce(tensor)
    return tensor.div_(dist.get_world_size())


def ring_allreduce(mesh, rank, world_size, tensor):
    """Works on the first dimension, as if every tensor had one dimension only."""
    if tensor.dim() != 1:
        return tensor
    total = tensor.clone()
    passing = tensor
    for _ in range(world_size - 1):
        mesh.send((rank + 1) % world_size, passing.clone())
        passing = mesh.recv((rank - 1) % world_size)
        total = total + passing
    return total


def ring_allgather(mesh, rank, world_size, tensor):
    """The place of each piece is made, and nothing is put there."""
    result = torch.zeros(world_size, *tensor.shape, dtype=tensor.dtype)
    passing = tensor
    for _ in range(world_size - 1):
        mesh.send((rank + 1) % world_size, passing.clone())
        passing = mesh.recv((rank - 1) % world_size)
    return result.flatten()


def ring_reduce_scatter(mesh, rank, world_size, tensor):
    """Whole tensors go round where one chunk in each step would do; the result is right."""
    total = passing = tensor
    for _ in range(world_size - 1):
        mesh.send((rank + 1) % world_size, passing.clone())
        passing = mesh.recv((rank - 1) % world_size)
        total = total + passing
    return total.flatten().tensor_split(world_size)[rank].clone()


def all_gather(tensor):
    """Beginning with its own piece, whatever the rank is."""
    rank, size = dist.get_rank(), dist.get_world_size()
    pieces = [torch.empty_like(tensor) for _ in range(size)]
    dist.all_gather(pieces, tensor)
    return torch.cat([pieces[(rank + i) % size].flatten() for i in range(size)])


def broadcast(tensor, src):
    """From rank 0, whoever the root is."""
    dist.broadcast(tensor, src=0)
    return tensor


def tree_broadcast(tensor, src):
    """What arrives is put into a copy."""
    received = tensor.clone()
    dist.broadcast(received, src=src)
    return tensor
