"""ZeRO-1 over one flat shard, whose gradient stays until the next step: 4 bytes per parameter beside the state."""

import torch
import torch.distributed as dist


class ShardedOptimizer(torch.optim.Optimizer):
    def __init__(self, params, optimizer_cls, **kwargs):
        self.all = list(params)
        super().__init__(self.all, {})
        self.n, self.rank = dist.get_world_size(), dist.get_rank()
        total = sum(p.numel() for p in self.all)
        self.per = -(-total // self.n)
        self.shard = torch.nn.Parameter(self._flat([p.data for p in self.all])[self.rank].clone())
        self.inner = optimizer_cls([self.shard], **kwargs)
        self.param_groups = self.inner.param_groups

    def _flat(self, tensors):
        flat = torch.cat([t.reshape(-1) for t in tensors])
        flat = torch.cat([flat, flat.new_zeros(self.per * self.n - flat.numel())])
        return flat.view(self.n, self.per)

    @torch.no_grad()
    def step(self, closure=None):
        grads = self._flat([torch.zeros_like(p) if p.grad is None else p.grad for p in self.all])
        dist.all_reduce(grads)
        self.shard.grad = (grads[self.rank] / self.n).clone()
        self.inner.step()
        out = torch.empty(self.n * self.per, dtype=self.shard.dtype)
        dist.all_gather_into_tensor(out, self.shard.data)
        at = 0
        for p in self.all:
            p.copy_(out[at : at + p.numel()].view_as(p))
            at += p.numel()

    def zero_grad(self, set_to_none=True):
        for p in self.all:
            p.grad = None
