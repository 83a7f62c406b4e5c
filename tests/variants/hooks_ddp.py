"""The form of a well-known course: asynchronous all-reduces from hooks, and a method that waits for them.

Copies of the gradients set out in one order on all ranks; what a rank did not use follows as zeros when the step is
finished. After several backward passes what set out in the first is thrown away.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class DDPOverlapIndividualParameters(torch.nn.Module):
    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.module = module
        for value in module.state_dict(keep_vars=True).values():
            if value.numel():
                dist.broadcast(value.detach(), src=0)
        for buffer in module.buffers():
            dist.broadcast(buffer, src=0)
        self.order = [p for p in reversed(list(module.parameters())) if p.requires_grad and p.numel()]
        self.ready = set()
        self.handles = []
        self.passes = 0
        for parameter in self.order:
            parameter.register_post_accumulate_grad_hook(self._arrived)

    def forward(self, *inputs, **kwargs):
        self.passes += torch.is_grad_enabled()
        return self.module(*inputs, **kwargs)

    def _arrived(self, parameter):
        self.ready.add(parameter)
        while len(self.handles) < len(self.order) and self.order[len(self.handles)] in self.ready:
            self._launch()

    def _launch(self):
        parameter = self.order[len(self.handles)]
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        mean = parameter.grad / dist.get_world_size()  # before the sum: as right as after it
        self.handles.append((mean, dist.all_reduce(mean, op=dist.ReduceOp.SUM, async_op=True)))

    def finish_gradient_synchronization(self):
        if self.passes > 1:
            for _, handle in self.handles:
                handle.wait()
            self.handles.clear()
        while len(self.handles) < len(self.order):
            self._launch()
        for parameter, (mean, handle) in zip(self.order, self.handles, strict=True):
            handle.wait()
            parameter.grad = mean
        self.handles.clear()
        self.ready.clear()
        self.passes = 0
