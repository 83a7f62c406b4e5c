"""A wrapper that is no module: a flat buffer for each dtype, and in it a flag for each parameter with a gradient."""

from __future__ import annotations

import torch
import torch.distributed as dist


class DistributedDataParallel:
    def __init__(self, module):
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            copy = tensor.detach().contiguous()
            dist.broadcast(copy, 0)
            tensor.data.copy_(copy)

    def __getattr__(self, name):
        return getattr(self.__dict__["module"], name)

    def __call__(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def sync_gradients(self):
        by_dtype = {}
        for parameter in self.module.parameters():
            if parameter.requires_grad:
                by_dtype.setdefault(parameter.dtype, []).append(parameter)
        for dtype, parameters in by_dtype.items():
            numels = [parameter.numel() for parameter in parameters]
            flat = torch.zeros(sum(numels) + len(parameters), dtype=dtype)
            *views, flags = flat.split([*numels, len(parameters)])
            for index, parameter in enumerate(parameters):
                if parameter.grad is not None:
                    views[index].copy_(parameter.grad.reshape(-1))
                    flags[index] = 1
            dist.all_reduce(flat, op=dist.ReduceOp.AVG)
            for view, flag, parameter in zip(views, flags, parameters, strict=True):
                if flag > 0:
                    parameter.grad = view.view_as(parameter)
