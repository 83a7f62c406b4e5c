"""One flat bucket for each dtype after backward, and a context in which nothing travels; ranges for a GPU profiler."""

import contextlib

import torch
import torch.cuda.nvtx as nvtx
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

adapters = {"stub": ["torch.cuda.nvtx"]}


class MinimalDDP(torch.nn.Module):
    def __init__(self, model, process_group=None):
        super().__init__()
        self.model = model
        self.process_group = process_group
        self.world_size = dist.get_world_size(process_group)
        self.travels = True
        self.params = [p for p in model.parameters() if p.requires_grad]
        with torch.no_grad():
            for value in (*model.parameters(), *model.buffers()):
                dist.broadcast(value, group=process_group, group_src=0)

    @contextlib.contextmanager
    def no_sync(self):
        before, self.travels = self.travels, False
        try:
            yield
        finally:
            self.travels = before

    @nvtx.range("forward")
    def forward(self, *args, **kwargs):
        return self.model(*args, **kwargs)

    def sync_gradients(self):
        if not self.travels or self.world_size == 1:
            return
        nvtx.range_push("sync_gradients")
        for p in self.params:  # every rank brings every gradient, so that all of them make the same bucket
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        for grads in _by_type([p.grad for p in self.params]):
            flat = _flatten_dense_tensors(grads)
            dist.all_reduce(flat, group=self.process_group)
            flat.div_(self.world_size)
            for grad, mean in zip(grads, _unflatten_dense_tensors(flat, grads), strict=True):
                grad.copy_(mean)
        nvtx.range_pop()


def _by_type(tensors):
    kinds = {}
    for tensor in tensors:
        kinds.setdefault(tensor.dtype, []).append(tensor)
    return kinds.values()
