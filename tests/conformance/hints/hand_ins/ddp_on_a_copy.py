"""Wrong: the flat bucket is reduced and divided, and never copied back into the gradients."""

import torch
import torch.distributed as dist


class DDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for value in (*module.parameters(), *module.buffers()):
            dist.broadcast(value.data, src=0)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self):
        gradients = [p.grad for p in self.module.parameters() if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
