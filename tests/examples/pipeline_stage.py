"""A stage with ``forward`` and ``backward`` of one microbatch, and a loop that its annotation says it is for."""

import torch
import torch.distributed as dist
from pipeline_function import receive


class PipelineStage(torch.nn.Module):
    def __init__(self, layers, rank, world_size):
        super().__init__()
        self.layers = layers
        self.rank, self.last = rank, world_size - 1
        self.saved = []

    def forward(self, x):
        x = x if self.rank == 0 else x.requires_grad_()
        out = self.layers(x)
        self.saved.append((x, out))
        return out.detach()

    def backward(self, grad):
        x, out = self.saved.pop(0)
        out.backward(grad)
        return x.grad


def run_gpipe(stage: PipelineStage, microbatches, targets, loss_fn):
    losses, grads, works = [], [], []

    def post(tensor, rank):
        header = torch.tensor([tensor.dim(), *tensor.shape, *[0] * (7 - tensor.dim())])
        works.extend((dist.isend(part, rank), part) for part in (header, tensor.contiguous()))

    for x, target in zip(microbatches, targets, strict=True):
        out = stage.forward(x if stage.rank == 0 else receive(stage.rank - 1))
        if stage.rank < stage.last:
            post(out, stage.rank + 1)
            continue
        loss = loss_fn(out.requires_grad_(), target)
        losses.append(loss.detach())
        grads += torch.autograd.grad(loss / len(microbatches), out)
    for index in range(len(microbatches)):
        grad = stage.backward(grads[index] if stage.rank == stage.last else receive(stage.rank + 1))
        if stage.rank:
            post(grad, stage.rank - 1)
    for work, _ in works:
        work.wait()
    return losses
