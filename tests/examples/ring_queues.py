"""What is written for ``multiprocessing``: a queue to the next rank and one from the rank before."""

import torch


def ring_allreduce(rank, world_size, tensor, send_queue, recv_queue):
    chunks = list(tensor.reshape(-1).clone().tensor_split(world_size))
    for step in range(world_size - 1):
        send_queue.put(chunks[(rank - step) % world_size])
        index = (rank - step - 1) % world_size
        chunks[index] = chunks[index] + recv_queue.get()
    for step in range(world_size - 1):
        send_queue.put(chunks[(rank + 1 - step) % world_size])
        chunks[(rank - step) % world_size] = recv_queue.get()
    return torch.cat(chunks).view(tensor.shape)
