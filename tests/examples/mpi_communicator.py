"""A class of an mpi4py course: its module asks for mpi4py, and everything goes through rank 0, in numpy's arrays."""

import numpy as np
from mpi4py import MPI

adapters = {"stub": ["mpi4py"]}


class Communicator:
    def __init__(self, comm: MPI.Comm):
        self.comm = comm

    def Get_rank(self):  # noqa: N802  (mpi4py's names, as such courses keep them)
        return self.comm.Get_rank()

    def Get_size(self):  # noqa: N802
        return self.comm.Get_size()

    def myAllreduce(self, src_array, dest_array, op=MPI.SUM):  # noqa: N802
        rank, size = self.comm.Get_rank(), self.comm.Get_size()
        if rank:
            self.comm.Send(src_array, dest=0)
            self.comm.Recv(dest_array, source=0)
            return
        np.copyto(dest_array, src_array)
        arriving = np.empty_like(src_array)
        for source in range(1, size):
            self.comm.Recv(arriving, source=source)
            dest_array += arriving
        for other in range(1, size):
            self.comm.Send(dest_array, dest=other)
