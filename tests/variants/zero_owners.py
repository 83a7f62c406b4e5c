"""The form of a well-known course: parameters have owners, who update them from the mean gradient and broadcast."""

from __future__ import annotations

import torch
import torch.distributed as dist


class ShardedOptimizer(torch.optim.Optimizer):
    def __init__(self, params, optimizer_cls, **kwargs):
        self.optimizer_cls = optimizer_cls
        self.kwargs = kwargs
        self.owners = {}
        self.inner = None
        super().__init__(params, kwargs)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in group["params"]:
            self.owners[p] = len(self.owners) % dist.get_world_size()
        mine = {**group, "params": [p for p in group["params"] if self.owners[p] == dist.get_rank()]}
        if self.inner is None:
            self.inner = self.optimizer_cls([mine], **self.kwargs)
        else:
            self.inner.add_param_group(mine)

    def step(self, closure=None):
        for mine, group in zip(self.inner.param_groups, self.param_groups, strict=True):
            mine.update({key: value for key, value in group.items() if key != "params"})
        self.inner.step(closure)
        for p, owner in self.owners.items():
            if p.numel():
                dist.broadcast(p.data, src=owner)
