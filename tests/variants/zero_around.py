"""Around an optimizer that is built already: it sees gradients of this rank's parameters only, so has no more state.

Its state dict is whole: every rank's states are put together.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class ZeroRedundancyOptimizer:
    def __init__(self, optimizer):
        self.inner = optimizer

    @property
    def param_groups(self):
        return self.inner.param_groups

    def params(self):
        return [p for group in self.inner.param_groups for p in group["params"] if p.requires_grad and p.numel()]

    def add_param_group(self, param_group):
        self.inner.add_param_group(param_group)

    def zero_grad(self):
        self.inner.zero_grad()

    def clip_grad_norm_(self, max_norm):
        """The gradients are averaged here, and then once more in step(): the mean of equal ones is the same."""
        self.average()
        return torch.nn.utils.clip_grad_norm_(self.params(), max_norm)

    def average(self):
        used = torch.tensor([float(p.grad is not None) for p in self.params()])
        dist.all_reduce(used)
        for p, count in zip(self.params(), used, strict=True):
            if count:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad.contiguous()
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()

    def step(self):
        self.average()
        params = self.params()
        for i, p in enumerate(params):
            if i % dist.get_world_size() != dist.get_rank():
                p.grad = None
        self.inner.step()
        for i, p in enumerate(params):
            dist.broadcast(p.data, src=i % dist.get_world_size())

    def state_dict(self):
        whole = self.inner.state_dict()
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, whole["state"])
        whole["state"] = {number: state for part in parts for number, state in part.items()}
        return whole

    def load_state_dict(self, state_dict):
        self.inner.load_state_dict(state_dict)
        for i, p in enumerate(self.params()):
            if i % dist.get_world_size() != dist.get_rank():
                self.inner.state.pop(p, None)


ShardedOptimizer = ZeroRedundancyOptimizer
