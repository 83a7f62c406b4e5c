"""Mixed precision on top of data parallelism: FP32 masters of all 16-bit parameters, a loss scale that halves."""

from __future__ import annotations

import torch
import torch.distributed as dist


class MixedPrecisionOptimizer:
    def __init__(self, params, optimizer_cls, loss_scale=1024.0, **kwargs):
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        self.half = [p for group in groups for p in group["params"]]
        masters = [{**group, "params": [p.detach().float() for p in group["params"]]} for group in groups]
        self.masters = [master for group in masters for master in group["params"]]
        self.inner = optimizer_cls(masters, **kwargs)
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
    def reload_model_params(self):
        for p, master in zip(self.half, self.masters, strict=True):
            master.copy_(p)

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
