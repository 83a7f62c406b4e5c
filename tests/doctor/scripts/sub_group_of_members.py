"""Only its members make a sub-group; then all ranks make another one."""

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() < 2:
    dist.new_group([0, 1])  # the fault
dist.new_group([0, 1, 2])
dist.barrier()
