"""No wrapper at all: a function of the module, called between backward and step."""

import torch
import torch.distributed as dist


def all_reduce_grads_(module: torch.nn.Module, world_size: int) -> None:
    for p in module.parameters():
        if not p.requires_grad:
            continue
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad.mul_(1.0 / world_size)


def broadcast_model(module: torch.nn.Module) -> None:
    for tensor in (*module.parameters(), *module.buffers()):
        dist.broadcast(tensor.data, src=0)
