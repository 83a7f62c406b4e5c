"""ZeRO-2 from hooks: each gradient is reduced to its parameter's owner as it comes, and gone.

Gradients set out in one order on all ranks; what a rank did not use follows as zeros when the backward is finished.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class Zero2Optimizer:
    def __init__(self, params, optimizer_cls, **kwargs):
        self.n, self.rank = dist.get_world_size(), dist.get_rank()
        self.order, self.ready, self.sent, self.sums = [], {}, [], {}
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
                self.order.append(p)
                p.register_post_accumulate_grad_hook(self.arrived)
        self.inner.add_param_group({**group, "params": [p for p in group["params"] if self.owner(p) == self.rank]})

    def owner(self, p):
        return next((i % self.n for i, other in enumerate(self.order) if other is p), 0)

    def arrived(self, p):
        self.ready[p] = p.grad.contiguous()
        p.grad = None
        while len(self.sent) < len(self.order) and self.order[len(self.sent)] in self.ready:
            self.launch(self.ready.pop(self.order[len(self.sent)]))

    def launch(self, gradient):
        owner = len(self.sent) % self.n
        self.sent.append((gradient, dist.reduce(gradient, dst=owner, async_op=True)))

    def sync_grads(self):
        while len(self.sent) < len(self.order):
            p = self.order[len(self.sent)]
            self.launch(self.ready.pop(p, torch.zeros_like(p)))
        for i, (gradient, work) in enumerate(self.sent):
            work.wait()
            if i % self.n == self.rank:
                self.sums[self.order[i]] = self.sums.get(self.order[i], 0) + gradient / self.n
        self.sent = []

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
        for i, p in enumerate(self.order):
            p.grad = None
            dist.broadcast(p.data, src=i % self.n)

    def zero_grad(self):
        self.sums = {}
        for p in self.order:
            p.grad = None

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state_dict):
        self.inner.load_state_dict(state_dict)
