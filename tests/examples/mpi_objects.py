"""Over mpi4py's lower-case names: objects are sent, arrays and pairs among them, and received as what they were."""

import numpy as np
import torch
from mpi4py import MPI

adapters = {"stub": ["mpi4py"]}


def ring_allreduce(comm, tensor):
    rank, size = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    chunks = np.array_split(tensor.reshape(-1).numpy().copy(), size)
    for step in range(size - 1):
        arrived = comm.sendrecv(chunks[(rank - step) % size], dest=right, source=left)
        chunks[(rank - step - 1) % size] = chunks[(rank - step - 1) % size] + arrived
    for step in range(size - 1):
        requests = [comm.isend(chunks[(rank + 1 - step) % size], dest=right, tag=step)]
        chunks[(rank - step) % size] = comm.irecv(source=left, tag=step).wait()
        MPI.Request.Waitall(requests)
    return torch.from_numpy(np.concatenate(chunks)).view(tensor.shape)


def all_reduce(comm, tensor):
    total = tensor.clone()
    if comm.rank:
        comm.send((comm.rank, tensor), dest=0, tag=7)
    else:
        arrived = dict(comm.recv(source=MPI.ANY_SOURCE) for _ in range(1, comm.size))
        for other in sorted(arrived):
            total = total + arrived[other]
    return comm.bcast(total, root=0)
