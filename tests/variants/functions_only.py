"""No wrapper: functions, and a worker that calls them."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist


def setup(rank, world_size, master_port="29500"):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(master_port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def broadcast_params(model, src=0):
    for p in model.parameters():
        if p.numel():
            whole = p.data.contiguous()
            dist.broadcast(whole, src=src)
            p.data.copy_(whole)
    for b in model.buffers():
        dist.broadcast(b, src=src)


def sum_grads(model):
    for p in model.parameters():
        if not p.requires_grad or not p.numel():
            continue
        grad = torch.zeros_like(p) if p.grad is None else p.grad.contiguous()
        dist.all_reduce(grad)
        p.grad = grad


def sync_gradients(model, n):
    sum_grads(model)
    for p in model.parameters():
        if p.grad is not None and p.requires_grad:
            p.grad.mul_(1 / n)


def local_slice(i, rank, n, b):
    return i * n * b + rank * b, i * n * b + (rank + 1) * b


def run_worker(rank, world_size, rendezvous_file, model_fn, x, y, num_steps, batch_size, lr, seed):
    if not dist.is_initialized():
        store = dist.FileStore(str(rendezvous_file), world_size)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    torch.manual_seed(seed)
    model = model_fn()
    broadcast_params(model)
    for step in range(num_steps):
        begin, end = local_slice(step, rank, world_size, batch_size)
        for p in model.parameters():
            p.grad = None
        torch.nn.functional.mse_loss(model(x[begin:end]), y[begin:end]).backward()
        sync_gradients(model, world_size)
        with torch.no_grad():
            for p in model.parameters():
                if p.grad is not None:
                    p -= lr * p.grad
    return model
