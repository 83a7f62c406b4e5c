"""A communicator whose methods are the collectives: lists or tensors, joined or not, as its author liked it."""

import torch
import torch.distributed as dist


class Communicator:
    def __init__(self, rank, world_size):
        self.rank, self.size = rank, world_size

    def _shift(self, outgoing, like):
        incoming = torch.empty(like.shape, dtype=like.dtype)
        works = []
        if outgoing.numel():
            works.append(dist.isend(outgoing.contiguous(), (self.rank + 1) % self.size))
        if incoming.numel():
            works.append(dist.irecv(incoming, (self.rank - 1) % self.size))
        for work in works:
            work.wait()
        return incoming

    def all_gather(self, local_shard):
        """A list with everybody's shard."""
        shards = [None] * self.size
        shards[self.rank] = local_shard.clone()
        for step in range(self.size - 1):
            index = (self.rank - step) % self.size
            shards[(index - 1) % self.size] = self._shift(shards[index], local_shard)
        return shards

    def reduce_scatter(self, chunks):
        chunks = [chunk.clone() for chunk in chunks]
        for step in range(self.size - 1):
            outgoing = chunks[(self.rank - step - 1) % self.size]
            index = (self.rank - step - 2) % self.size
            chunks[index] += self._shift(outgoing, chunks[index])
        return chunks[self.rank]

    def all_reduce(self, tensor):
        mine = self.reduce_scatter(list(tensor.reshape(-1).tensor_split(self.size)))
        sizes = [len(part) for part in tensor.reshape(-1).tensor_split(self.size)]
        whole = torch.empty(tensor.numel(), dtype=tensor.dtype).split(sizes)
        whole[self.rank].copy_(mine)
        for step in range(self.size - 1):
            index = (self.rank - step) % self.size
            whole[(index - 1) % self.size].copy_(self._shift(whole[index], whole[(index - 1) % self.size]))
        return torch.cat(whole).view(tensor.shape)

    def broadcast(self, tensor, src=0):
        if self.size == 1 or tensor.numel() == 0:
            return tensor
        buffer = tensor.contiguous()
        if self.rank == src:
            for work in [dist.isend(buffer, rank) for rank in range(self.size) if rank != src]:
                work.wait()
            return tensor
        buffer = torch.empty_like(buffer)
        dist.recv(buffer, src)
        return buffer
