"""The same, and the loop does not say whether it takes a stage or its module: it is asked, and not guessed."""

import torch
from pipeline_stage import run_gpipe as _run


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


def run_gpipe(stage, microbatches, targets, loss_fn):
    return _run(stage, microbatches, targets, loss_fn)
