"""ZeRO-2 from hooks: each gradient is reduced to its parameter's owner as it comes, and gone.

They set out in one order on all ranks, the last parameter's first; what a rank did not use follows as zeros when the
backward is finished.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class Zero2Optimizer:
    def __init__(self, params, optimizer_cls, **kwargs):
        self.n, self.rank = dist.get_world_size(), dist.get_rank()
        self.owners, self.ready, self.num_sent, self.sums = {}, {}, 0, {}
        self.whole = optimizer_cls(params, **kwargs)  # never steps: it has the groups, in torch's way
        self.inner = optimizer_cls([{"params": []}], **kwargs)
        for group in self.whole.param_groups:
            self.take(group)

    @property
    def param_groups(self):
        return self.whole.param_groups

    def add_param_group(self, param_group):
        self.whole.add_param_group(param_group)
        self.take(self.whole.param_groups[-1])

    def take(self, group):
        for p in group["params"]:
            if p.requires_grad and p.numel():
                self.owners[p] = len(self.owners) % self.n
                p.register_post_accumulate_grad_hook(self.arrived)
        mine = [p for p in group["params"] if self.owners.get(p, 0) == self.rank]
        self.inner.add_param_group({**group, "params": mine})

    def arrived(self, p):
        self.ready[p] = p.grad.contiguous()
        p.grad = None
        order = list(reversed(self.owners))
        while self.num_sent < len(order) and order[self.num_sent] in self.ready:
            self.reduce(order[self.num_sent])

    def reduce(self, p):
        gradient = self.ready.pop(p) if p in self.ready else torch.zeros_like(p)
        dist.reduce(gradient, dst=self.owners[p])
        if self.owners[p] == self.rank:
            self.sums[p] = self.sums.get(p, 0) + gradient / self.n
        self.num_sent += 1

    def sync_grads(self):
        for p in list(reversed(self.owners))[self.num_sent :]:
            self.reduce(p)
        self.num_sent = 0

    def clip_grad_norm_(self, max_norm):
        square = sum((g.square().sum() for g in self.sums.values()), torch.zeros(()))
        dist.all_reduce(square)
        norm = square.sqrt()
        for g in self.sums.values():
            g *= (max_norm / norm).clamp(max=1)
        return norm

    @torch.no_grad()
    def step(self):
        for mine, group in zip(self.inner.param_groups[1:], self.whole.param_groups, strict=True):
            mine.update({key: value for key, value in group.items() if key != "params"})
        for p, gradient in self.sums.items():
            p.grad = gradient.to(p.dtype)
        self.inner.step()
        for p, owner in self.owners.items():
            p.grad = None
            dist.broadcast(p.data, src=owner)

    def zero_grad(self):
        self.sums = {}
        for p in self.owners:
            p.grad = None

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state_dict):
        self.inner.load_state_dict(state_dict)
        for mine, group in zip(self.inner.param_groups[1:], self.whole.param_groups, strict=True):
            group.update({key: value for key, value in mine.items() if key != "params"})
