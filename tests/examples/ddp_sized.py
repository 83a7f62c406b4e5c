"""Told how many ranks there are; the gradients of all parameters in one flat tensor, by a method with a short name."""

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


class NaiveDDP(torch.nn.Module):
    def __init__(self, module, world_size):
        super().__init__()
        self.module = module
        self.world_size = world_size
        for tensor in (*module.state_dict().values(), *module.buffers()):
            dist.broadcast(tensor, 0)

    def forward(self, x):
        return self.module(x)

    def sync_gradients(self):
        used = [p for p in self.module.parameters() if p.requires_grad]
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in used]
        flat = _flatten_dense_tensors(grads)
        dist.all_reduce(flat, op=dist.ReduceOp.SUM)
        for p, grad in zip(used, _unflatten_dense_tensors(flat.div_(self.world_size), grads), strict=True):
            p.grad = grad.clone()
