"""A subclass of Optimizer around any optimizer: parameters go round robin, and their owners broadcast them."""

import torch
import torch.distributed as dist


class ShardedStateOptimizer(torch.optim.Optimizer):
    def __init__(self, params, optimizer_cls, **kwargs):
        self.params, self.cls, self.kwargs, self.inner = [], optimizer_cls, kwargs, None
        super().__init__(params, kwargs)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        mine = []
        for p in group["params"]:
            if len(self.params) % dist.get_world_size() == dist.get_rank():
                mine.append(p)
            self.params.append(p)
        fields = {key: value for key, value in group.items() if key != "params"}
        if self.inner is None:
            self.inner = self.cls([{"params": mine, **fields}], **self.kwargs)
        else:
            self.inner.add_param_group({"params": mine, **fields})

    def step(self, closure=None):
        for inner, outer in zip(self.inner.param_groups, self.param_groups, strict=True):
            inner.update({key: value for key, value in outer.items() if key != "params"})
        loss = self.inner.step(closure)
        for i, p in enumerate(self.params):
            dist.broadcast(p.data, src=i % dist.get_world_size())
        return loss

    def state_dict(self):
        return {"rank": dist.get_rank(), "inner": self.inner.state_dict()}

    def load_state_dict(self, state_dict):
        self.inner.load_state_dict(state_dict["inner"])
        for outer, inner in zip(self.param_groups, self.inner.param_groups, strict=True):
            outer.update({key: value for key, value in inner.items() if key != "params"})
