"""Imports a neighbour by the package's name, and so runs its ``__init__``."""

import torch

from their_package.reduce import mean_


class DataParallelWrapper(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for value in (*module.parameters(), *module.buffers()):
            torch.distributed.broadcast(value.data, src=0)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def finish_gradient_synchronization(self):
        for p in self.module.parameters():
            if p.requires_grad:
                mean_(p)
