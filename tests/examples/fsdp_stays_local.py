"""Wrong: gradients are this rank's own, cut to its shard and never reduced."""

import torch
import torch.distributed as dist


class MiniFSDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.whole = module, {}
        self.shards = torch.nn.ParameterList()
        for p in module.parameters():
            size = -(-p.numel() // dist.get_world_size())
            self.shards.append(torch.nn.Parameter(self.cut(p.detach(), size), requires_grad=p.requires_grad))

    @staticmethod
    def cut(tensor, size):
        flat = torch.nn.functional.pad(tensor.reshape(-1), (0, size * dist.get_world_size() - tensor.numel()))
        return flat.split(size)[dist.get_rank()].clone()

    def forward(self, *inputs):
        for p, shard in zip(self.module.parameters(), self.shards, strict=True):
            parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, shard.detach())
            p.data = torch.cat(parts)[: p.numel()].view(p.shape)
        return self.module(*inputs)

    def parameters(self, recurse=True):
        return iter(self.shards)

    def finish_gradient_synchronization(self):
        for p, shard in zip(self.module.parameters(), self.shards, strict=True):
            shard.grad = None if p.grad is None else self.cut(p.grad, len(shard))
            p.grad = None
