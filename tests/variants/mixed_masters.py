"""Mixed precision on top of data parallelism: FP32 masters of all 16-bit parameters, a loss scale that halves."""

from __future__ import annotations

import torch
import torch.distributed as dist


class MixedPrecisionOptimizer:
    def __init__(self, params, optimizer_cls, loss_scale=1024.0, **kwargs):
        self.half = [p for p in params if p.requires_grad]
        self.masters = [p.detach().float().requires_grad_() for p in self.half]
        self.inner = optimizer_cls(self.masters, **kwargs)
        self.loss_scale = loss_scale if self.half[0].dtype == torch.float16 else 1.0

    @property
    def param_groups(self):
        return self.inner.param_groups

    def scale(self, loss):
        return loss * self.loss_scale

    def zero_grad(self):
        for p in self.half:
            p.grad = None

    @torch.no_grad()
    def step(self):
        bad = torch.tensor([float(not all(p.grad.isfinite().all() for p in self.half if p.grad is not None))])
        dist.all_reduce(bad)
        if self.half[0].dtype == torch.float16 and bad:
            self.loss_scale /= 2
            return
        for p, master in zip(self.half, self.masters, strict=True):
            master.grad = None if p.grad is None else p.grad.float() / self.loss_scale
        self.inner.step()
        for p, master in zip(self.half, self.masters, strict=True):
            p.copy_(master)
