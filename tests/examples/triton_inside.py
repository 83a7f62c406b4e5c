"""A package for GPUs that is imported where it is used: the report of the crash names the line that replaces it."""

import torch
import torch.distributed as dist


class DDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        import triton

        self.clock = triton
        self.module = module
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, src=0)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def sync_grads(self):
        for p in self.module.parameters():
            if p.requires_grad:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
