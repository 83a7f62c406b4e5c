"""``(tensor, world_size=None, rankid=None)``: asks torch.distributed where it is not told; and its own inplace sum."""

import torch
import torch.distributed as dist


def allreduce_inplace(tensor, world_size=None, rankid=None):
    """Everybody sends everything to everybody, in rounds."""
    world_size = dist.get_world_size() if world_size is None else world_size
    rankid = dist.get_rank() if rankid is None else rankid
    mine = tensor.contiguous().clone()
    theirs = {rankid: mine}
    for distance in range(1, world_size):
        to, source = (rankid + distance) % world_size, (rankid - distance) % world_size
        theirs[source] = torch.empty_like(mine)
        if mine.numel():
            work = dist.isend(mine, to)
            dist.recv(theirs[source], source)
            work.wait()
    total = theirs[0]
    for rank in range(1, world_size):
        total = total + theirs[rank]
    tensor.copy_(total)
