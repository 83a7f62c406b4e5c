"""The cures of the failure modes, each as one function that a scenario can put in the place of the fault."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.reference.calls import broadcast_parameters


def cure_missing_broadcast(module: nn.Module) -> None:
    """Start from rank 0's parameters and buffers everywhere, whatever each rank had initialised."""
    broadcast_parameters(module, src=0)


def cure_shared_shuffle_seed(num_samples: int, rank: int, world_size: int, seed: int) -> list[int]:
    """One permutation that all ranks share, of which rank r takes every N-th element from r on.

    With `seed + rank` each rank would shuffle for itself: the streams differ, and still overlap. The generator is the
    shuffle's own, since what the global one draws next (initial weights, say) is to be equal on all ranks.
    """
    shuffle = torch.Generator().manual_seed(seed)
    order: list[int] = torch.randperm(num_samples, generator=shuffle).tolist()
    return order[rank::world_size]


def cure_unused_parameter_deadlock(module: nn.Module, world_size: int) -> None:
    """All parameters in one order, with zeros where a gradient is missing: no rank leaves a meeting out."""
    for parameter in module.parameters():
        if parameter.requires_grad:
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.contiguous()
            dist.all_reduce(grad)
            parameter.grad = grad.div_(world_size)


def cure_slow_accumulation(
    module: nn.Module, microbatches: Sequence[Tensor], loss_fn: Callable[[Tensor], Tensor]
) -> None:
    """All microbatches but the last inside ``no_sync()``, with their forward; the last one reduces the total.

    With the last one inside as well nothing would ever be reduced.
    """
    *earlier, last = microbatches
    with module.no_sync():  # type: ignore[operator]  # of the wrapper
        for rows in earlier:
            loss_fn(module(rows)).backward()  # type: ignore[no-untyped-call]
    loss_fn(module(last)).backward()  # type: ignore[no-untyped-call]


def cure_sum_without_divide(module: nn.Module, world_size: int) -> None:
    """The mean of N equal parts is their sum over N: the step no longer depends on how many ranks share the batch."""
    for parameter in module.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(world_size)


def cure_pipeline_send_send(rank: int, world_size: int, tensor: Tensor) -> Tensor:
    """Pass `tensor` on around a ring; even ranks send first, odd ranks receive first.

    Of two neighbours one is ready to receive while the other sends. In a ring of odd length ranks N-1 and 0 are both
    even and both send, but rank N-1's other neighbour receives, so the chain unwinds from there.
    """
    if world_size == 1:
        return tensor.clone()
    following, preceding = (rank + 1) % world_size, (rank - 1) % world_size
    arrived = torch.empty_like(tensor)
    if rank % 2 == 0:
        dist.send(tensor, following)
        dist.recv(arrived, preceding)
    else:
        dist.recv(arrived, preceding)
        dist.send(tensor, following)
    return arrived


def cure_fsdp_70b_over_80gb(
    num_parameters: int, bytes_per_parameter: int, device_bytes: int, ranks_per_node: int = 8
) -> int:
    """The fewest ranks, in whole nodes, whose share of parameters, gradients and optimizer state fits on a device.

    More ranks are the cure because each holds 1/N of all states. Activation checkpointing is none: it makes room among
    activations, and there are none in these bytes.
    """
    num_ranks = math.ceil(num_parameters * bytes_per_parameter / device_bytes)
    return math.ceil(num_ranks / ranks_per_node) * ranks_per_node
