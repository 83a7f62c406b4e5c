"""1F1B as a function: isend and irecv in batches, shapes from a trial run of a microbatch, no other schedule."""

import torch
import torch.distributed as dist


def _shape_behind(module, x, rank, world_size):
    """The shape and dtype of what arrives here, and of what leaves, without the rows: told from rank to rank."""
    arrives = [None]
    if rank > 0:
        dist.recv_object_list(arrives, src=rank - 1)
        shape, dtype = arrives[0]
        x = torch.zeros(1, *shape, dtype=dtype)
    with torch.no_grad():
        out = module(x[:1])
    if not isinstance(out, torch.Tensor):
        raise NotImplementedError("one tensor at a boundary")
    leaves = (tuple(out.shape[1:]), out.dtype)
    if rank + 1 < world_size:
        dist.send_object_list([leaves], dst=rank + 1)
    return arrives[0], leaves


def _together(*ops):
    ops = [dist.P2POp(*op) for op in ops if op is not None]
    for work in dist.batch_isend_irecv(ops) if ops else ():
        work.wait()


def train_step(model, xs, ys, loss_func, rank, world_size, schedule_name="1f1b"):
    if schedule_name != "1f1b":
        raise NotImplementedError(schedule_name)
    first, last = rank == 0, rank == world_size - 1
    arrives, leaves = _shape_behind(model, xs[0], rank, world_size)
    total, count = sum(len(y) for y in ys), len(xs)
    waiting, losses = [], []

    def room(m, about):
        return torch.empty(len(ys[m]), *about[0], dtype=about[1])

    def forward(m, x):
        if not first:
            x.requires_grad_()
        out = model(xs[m] if first else x)
        if last:
            loss = loss_func(out, ys[m])
            losses.append(loss.detach())
            out = loss * len(ys[m]) / total
        waiting.append((x, out))
        return out.detach()

    def backward(grad):
        x, out = waiting.pop(0)
        if out.requires_grad:
            out.backward(None if last else grad)
        return None if first else (torch.zeros_like(x) if x.grad is None else x.grad)

    def recv_forward(m):
        x = None if first else room(m, arrives)
        _together(None if first else (dist.irecv, x, rank - 1))
        return x

    ahead = min(count, world_size - rank - 1)
    for m in range(ahead):
        out = forward(m, recv_forward(m))
        _together(None if last else (dist.isend, out, rank + 1))
    x = recv_forward(ahead) if ahead < count else None
    for m in range(ahead, count):
        out = forward(m, x)
        grad = None if last else room(m - ahead, leaves)
        _together(*[] if last else [(dist.isend, out, rank + 1), (dist.irecv, grad, rank + 1)])
        grad = backward(grad)
        x = None if first or m + 1 == count else room(m + 1, arrives)
        sends = None if first else (dist.isend, grad, rank - 1)
        _together(sends, None if x is None else (dist.irecv, x, rank - 1))
    for m in range(count - ahead, count):
        grad = None if last else room(m, leaves)
        _together(None if last else (dist.irecv, grad, rank + 1))
        grad = backward(grad)
        _together(None if first else (dist.isend, grad, rank - 1))
    return torch.stack(losses) if losses else None
