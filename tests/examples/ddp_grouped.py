"""On a process group that it is given; hooks do everything, and backward() returns when the gradients are means."""

import torch
import torch.distributed as dist
from torch.autograd import Variable


class DataParallelHooks(torch.nn.Module):
    def __init__(self, module, process_group=None):
        super().__init__()
        self.module, self.process_group = module, process_group
        self.size = dist.get_world_size(process_group)
        self.params = [p for p in module.parameters() if p.requires_grad]
        first = dist.get_global_rank(process_group, 0) if process_group else 0
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, first, group=process_group)
        self.queued = False
        for p in self.params:
            p.register_post_accumulate_grad_hook(self.note)

    def note(self, _):
        if not self.queued:
            self.queued = True
            Variable._execution_engine.queue_callback(self.reduce)

    def reduce(self):
        self.queued = False
        for p in self.params:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad, group=self.process_group)
            p.grad.div_(self.size)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


DDP = DataParallelHooks
