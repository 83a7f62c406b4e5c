"""Wrong: the state dict has the options of each group, and not what the inner optimizer remembers."""

import torch
import torch.distributed as dist


class ShardedOptimizer(torch.optim.Optimizer):
    def __init__(self, params, optimizer_cls, **kwargs):
        super().__init__(list(params), {"lr": 0.1, **kwargs})
        self.all = [p for group in self.param_groups for p in group["params"]]
        rank, size = dist.get_rank(), dist.get_world_size()
        mine = [p for i, p in enumerate(self.all) if i % size == rank]
        self.inner = optimizer_cls(mine, **kwargs) if mine else None

    def step(self, closure=None):
        size = dist.get_world_size()
        for p in self.all:
            if p.requires_grad:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
                dist.all_reduce(p.grad)
                p.grad /= size
        if self.inner is not None:
            for group in self.inner.param_groups:
                group["lr"] = self.param_groups[0]["lr"]
            self.inner.step()
        for i, p in enumerate(self.all):
            dist.broadcast(p.data, src=i % size)

    def state_dict(self):
        return {"state": {}, "param_groups": [{"lr": group["lr"]} for group in self.param_groups]}

    def load_state_dict(self, state):
        for group, saved in zip(self.param_groups, state["param_groups"], strict=True):
            group["lr"] = saved["lr"]
