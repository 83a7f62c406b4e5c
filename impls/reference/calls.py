"""The calls of torch.distributed that data parallelism and ZeRO are made of, each with what it has to look out for.

gloo reads a tensor's memory as one piece. A strided tensor (a slice of columns, say) would be read wrongly and its
neighbours overwritten, so what may be strided travels as a contiguous copy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn


def init_group(rank: int, world_size: int, init_file: str | None = None, port: int | None = None) -> None:
    """Join the default gloo group: through `init_file`, a path on which no file exists yet, or over TCP by `port`.

    With `port`, rank 0 listens there on MASTER_ADDR (this machine, unless the environment says otherwise).
    """
    if (init_file is None) == (port is None):
        raise ValueError("ranks meet either through init_file or through port: give exactly one")
    if init_file is not None:
        method = f"file://{init_file}"
    else:
        os.environ["MASTER_PORT"] = str(port)
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")  # the port alone is not enough
        method = "env://"
    dist.init_process_group(backend="gloo", init_method=method, rank=rank, world_size=world_size)


def broadcast_parameters(module: nn.Module, src: int = 0, group: dist.ProcessGroup | None = None) -> None:
    """Give every parameter and buffer the values that rank `src` of the group has."""
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            whole = tensor.detach().contiguous()
            if whole.numel():
                dist.broadcast(whole, group=group, group_src=src)
            if not tensor.is_contiguous():
                tensor.copy_(whole)


def sum_gradients(module: nn.Module, group: dist.ProcessGroup | None = None) -> None:
    """Replace every gradient by its sum over ranks, one all-reduce for each parameter in their order.

    A rank without a gradient that another has must not skip the call: the others would wait, or add the next
    parameter's gradient to this one. So the ranks first agree on who has one, and zeros fill the gaps.
    """
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not parameters:
        return
    used = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.uint8)  # [parameters]
    dist.all_reduce(used, op=dist.ReduceOp.MAX, group=group)
    for parameter, is_used in zip(parameters, used.tolist(), strict=True):
        if not is_used:
            continue  # on no rank: stays None, as in a single process
        grad = parameter.new_zeros(parameter.shape) if parameter.grad is None else parameter.grad.detach().contiguous()
        if grad.numel():
            dist.all_reduce(grad, op=dist.ReduceOp.SUM, group=group)
        if parameter.grad is None:
            parameter.grad = grad
        elif not parameter.grad.is_contiguous():
            parameter.grad.copy_(grad)


def average_gradients(module: nn.Module, world_size: int, group: dist.ProcessGroup | None = None) -> None:
    """Replace every gradient by its mean over ranks: the sum, divided by N.

    With the sum alone the step would grow with N, and a learning rate found on one rank would fail on eight.
    """
    sum_gradients(module, group)
    for parameter in module.parameters():
        if parameter.grad is not None and parameter.requires_grad:
            parameter.grad.div_(world_size)


def shard_gradients(tensor: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """This rank's part of the summed flat gradient: all that ZeRO-1's optimizer shard needs. [about numel/N]

    Half the bytes of an all-reduce, by count; how many gloo really sends is gloo's affair.
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    chunks: Sequence[Tensor] = tensor.detach().flatten().tensor_split(world_size)  # sizes differ by at most one
    local_grad = torch.empty_like(chunks[rank])
    dist.reduce_scatter(local_grad, [chunk.contiguous() for chunk in chunks], op=dist.ReduceOp.SUM, group=group)
    return local_grad


def gather_parameters(master_shard: Tensor, dtype: torch.dtype, group: dist.ProcessGroup | None = None) -> Tensor:
    """All ranks' shards (of equal size) joined flat in rank order. [N * numel]

    The FP32 master is cast to the parameters' `dtype` before it travels: for bf16 parameters that halves the bytes.
    """
    shard = master_shard.detach().flatten().to(dtype)
    gathered = [torch.empty_like(shard) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, shard, group=group)
    return torch.cat(gathered)
