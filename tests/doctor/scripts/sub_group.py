"""One member of a sub-group does not make it."""

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() != 2:
    dist.new_group([0, 1, 2])  # every rank has to call this
dist.barrier()
