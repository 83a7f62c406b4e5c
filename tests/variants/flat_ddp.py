"""All gradients as one flat tensor for each dtype, reduced with AVG after backward; a function makes the wrapper."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


class FlatDDP:
    """No nn.Module of its own: it is called like one."""

    def __init__(self, model, group=None):
        self.module = model
        self.group = group
        for values in self._by_dtype([*model.parameters(), *model.buffers()]):
            flat = _flatten_dense_tensors([v.detach() for v in values])
            dist.broadcast(flat, src=0, group=group)
            for value, part in zip(values, _unflatten_dense_tensors(flat, values), strict=True):
                value.detach().copy_(part)

    def __call__(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def on_after_backward(self, optimizer):
        for params in self._by_dtype([p for p in self.module.parameters() if p.requires_grad]):
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in params]
            flat = _flatten_dense_tensors(grads)
            dist.all_reduce(flat, op=dist.ReduceOp.AVG, group=self.group)
            for p, mean in zip(params, _unflatten_dense_tensors(flat, grads), strict=True):
                p.grad = mean.clone()

    @staticmethod
    def _by_dtype(tensors):
        found = {}
        for tensor in tensors:
            if tensor.numel():
                found.setdefault(tensor.dtype, []).append(tensor)
        return found.values()


def get_ddp(module):
    return FlatDDP(module)
