"""Over an object with mpi4py's ``Sendrecv``: from one buffer into another."""

import torch


def allreduce(comm, sendbuf, recvbuf):
    rank, size = comm.Get_rank(), comm.Get_size()
    recvbuf.copy_(sendbuf)
    moving, arriving = sendbuf.contiguous().clone(), torch.empty(sendbuf.shape, dtype=sendbuf.dtype)
    contributions = {rank: moving.clone()}
    for step in range(size - 1):
        comm.Sendrecv(moving, dest=(rank + 1) % size, recvbuf=arriving, source=(rank - 1) % size)
        contributions[(rank - step - 1) % size] = arriving.clone()
        moving.copy_(arriving)
    total = contributions[0]
    for source in range(1, size):
        total = total + contributions[source]
    recvbuf.copy_(total)
