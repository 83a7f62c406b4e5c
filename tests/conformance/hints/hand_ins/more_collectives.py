"""One frequent fault in each function: the result is as a student's first version has it."""

import torch
import torch.distributed as dist


def all_reduce(tensor):
    """Its own contribution comes in twice over: the sum is added to itself."""
    dist.all_reduce(tensor)
    return tensor.add_(tensor)


def ring_allreduce(mesh, rank, world_size, tensor):
    """What arrives lies in a float32 buffer, so that other dtypes come back as float32."""
    total = tensor.to(torch.float32)
    passing = tensor
    for _ in range(world_size - 1):
        mesh.send((rank + 1) % world_size, passing.clone())
        passing = mesh.recv((rank - 1) % world_size)
        total = total + passing
    return total


def ring_allgather(mesh, rank, world_size, tensor):
    """Pieces are joined from the second element on: one place too far."""
    pieces = {rank: tensor}
    for step in range(world_size - 1):
        mesh.send((rank + 1) % world_size, pieces[(rank - step) % world_size].clone())
        pieces[(rank - step - 1) % world_size] = mesh.recv((rank - 1) % world_size)
    return torch.cat([pieces[r].flatten() for r in range(world_size)]).roll(1)


def ring_reduce_scatter(mesh, rank, world_size, tensor):
    """A rank ends with the part of the next one: the ring begins with its own chunk."""
    chunks = [chunk.clone() for chunk in tensor.flatten().tensor_split(world_size)]
    for step in range(world_size - 1):
        mesh.send((rank + 1) % world_size, chunks[(rank - step) % world_size].clone())
        arriving = mesh.recv((rank - 1) % world_size)
        chunks[(rank - step - 1) % world_size] += arriving
    return chunks[(rank + 1) % world_size]


def all_gather(tensor):
    """Half the bytes: everything travels as bfloat16."""
    pieces = [torch.empty(tensor.shape, dtype=torch.bfloat16) for _ in range(dist.get_world_size())]
    dist.all_gather(pieces, tensor.bfloat16().contiguous())
    return torch.cat([piece.to(tensor.dtype).flatten() for piece in pieces])


def tree_broadcast(mesh, rank, world_size, tensor, src):
    """To the next rank, and not on from there."""
    if rank == src:
        mesh.send((src + 1) % world_size, tensor)
    elif rank == (src + 1) % world_size:
        return mesh.recv(src)
    return tensor
