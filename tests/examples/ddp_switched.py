"""Hooks that reduce at once, and a switch for the microbatches before the last: the accumulated gradient travels."""

import torch
import torch.distributed as dist


class OverlappedDDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.require_backward_grad_sync = True
        self.works = []
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, src=0)
        self.params = [p for p in module.parameters() if p.requires_grad]
        for p in self.params:
            p.register_post_accumulate_grad_hook(self.hook)

    def set_require_backward_grad_sync(self, value: bool):
        self.require_backward_grad_sync = value

    def hook(self, p):
        if self.require_backward_grad_sync:
            self.works.append((p, dist.all_reduce(p.grad, async_op=True)))

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        for p, work in self.works:
            work.wait()
            p.grad /= dist.get_world_size()
        self.works.clear()
