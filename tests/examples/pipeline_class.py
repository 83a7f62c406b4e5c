"""A class with ``forward`` and ``backward`` of one microbatch, and a step that calls them in the order of 1F1B."""

from collections import deque

import torch
import torch.distributed as dist
from pipeline_function import receive


class OneFOneBPipeline:
    def __init__(self, stage: torch.nn.Module, rank: int, world_size: int, loss_fn):
        self.stage, self.rank, self.last, self.loss_fn = stage, rank, world_size - 1, loss_fn
        self.waiting = deque()
        self.losses = []
        self.works = []

    def forward(self, x, target):
        x = x if self.rank == 0 else receive(self.rank - 1).requires_grad_()
        out = self.stage(x)
        if self.rank == self.last:
            out = self.loss_fn(out, target)
            self.losses.append(out.detach())
            out = out / self.count
        else:
            self.post(out, self.rank + 1)
        self.waiting.append((x, out))

    def backward(self):
        x, out = self.waiting.popleft()
        out.backward(None if self.rank == self.last else receive(self.rank + 1))
        if self.rank:
            self.post(x.grad, self.rank - 1)

    def post(self, tensor, rank):
        """Without waiting: neighbours that both send first would lock."""
        header = torch.tensor([tensor.dim(), *tensor.shape, *[0] * (7 - tensor.dim())])
        body = tensor.detach().contiguous()
        self.works += [(dist.isend(part, rank), part) for part in (header, body)]

    def step(self, microbatches, targets):
        self.losses, self.count = [], len(microbatches)
        warm_up = min(self.last - self.rank, len(microbatches))
        for i in range(len(microbatches)):
            self.forward(microbatches[i], targets[i])
            if i >= warm_up:
                self.backward()
        while self.waiting:
            self.backward()
        for work, _ in self.works:
            work.wait()
        self.works.clear()
        return self.losses
