"""GPipe as a function without a schedule: blocking sends with their shapes ahead, backward from the last microbatch."""

import torch
import torch.distributed as dist

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool]


def send(values, dst):
    header = torch.zeros(2, dtype=torch.int64)
    header[0] = len(values)
    dist.send(header, dst)
    for value in values:
        dist.send(torch.tensor([DTYPES.index(value.dtype), value.dim(), *value.shape, *[0] * (4 - value.dim())]), dst)
        dist.send(value.detach().contiguous(), dst)


def recv(src):
    header = torch.zeros(2, dtype=torch.int64)
    dist.recv(header, src)
    values = []
    for _ in range(int(header[0])):
        about = torch.zeros(6, dtype=torch.int64)
        dist.recv(about, src)
        dtype, dims, *shape = about.tolist()
        value = torch.empty(shape[:dims], dtype=DTYPES[dtype])
        dist.recv(value, src)
        values.append(value)
    return values


def pipeline_step(module, microbatches, targets, criterion, rank, world_size):
    """No `schedule`: there is one only."""
    total = sum(len(target) for target in targets)
    kept, losses = [], []
    for microbatch, target in zip(microbatches, targets, strict=True):
        inputs = recv(rank - 1) if rank > 0 else [microbatch]
        if rank > 0:
            for value in inputs:
                value.requires_grad_(value.is_floating_point())
        out = module(*inputs)
        outputs = list(out) if isinstance(out, tuple) else [out]
        if rank + 1 < world_size:
            send(outputs, rank + 1)
        else:
            loss = criterion(outputs[0], target)
            losses.append(loss.item())
            outputs = [loss * (len(target) / total)]
        kept.append((inputs, outputs))
    for inputs, outputs in reversed(kept):
        wanted = [out for out in outputs if out.is_floating_point()]
        grads = recv(rank + 1) if rank + 1 < world_size else [torch.ones_like(out) for out in wanted]
        pairs = [(out, grad) for out, grad in zip(wanted, grads, strict=True) if out.requires_grad]
        if pairs:
            torch.autograd.backward([out for out, _ in pairs], [grad for _, grad in pairs])
        if rank > 0:
            floats = [value for value in inputs if value.is_floating_point()]
            send([torch.zeros_like(v) if v.grad is None else v.grad for v in floats], rank - 1)
    return losses
