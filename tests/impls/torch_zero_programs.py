"""Programs that train with PyTorch's sharded blocks on ranks, and alone in one process. Imports no pytest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fixtures import models
from fixtures.world.context import RankContext
from impls.torch_native import ShardedOptimizer, fully_shard
from impls.torch_native.fsdp1 import fsdp1

ROWS = 2  # of each rank, in each step
SEED = 5
Weights = dict[str, Tensor]


def batch(step: int, rank: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets of one rank. [ROWS, FEATURES] each"""
    return models.rows(ROWS, 1000 + 10 * step + rank, real=True), models.rows(ROWS, 2000 + 10 * step + rank, real=True)


def adam(params: Any) -> torch.optim.Optimizer:
    """With an eps that keeps noise of a gradient near zero from becoming a whole step."""
    return torch.optim.Adam(params, lr=0.1, eps=1e-2)


def groups_of(module: nn.Module) -> list[dict[str, Any]]:
    """Biases and the rest, with options of their own."""
    named = dict(module.named_parameters())
    return [
        {"params": [p for name, p in named.items() if "bias" not in name], "weight_decay": 0.1},
        {"params": [p for name, p in named.items() if "bias" in name], "lr": 0.01},
    ]


def weights(module: nn.Module) -> Weights:
    """Copies of all parameters by name, tied ones under each of theirs."""
    return {name: p.detach().clone() for name, p in module.named_parameters(remove_duplicate=False)}


def train(
    forward: Callable[[Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    ranks: Sequence[int],
    steps: Sequence[int],
    clip: Callable[[], Any] | None = None,
) -> None:
    """Some steps on the batches of `ranks`, joined; the learning rate falls in each."""
    for step in steps:
        for param_group in optimizer.param_groups:
            param_group["lr"] *= 0.9
        x, y = (torch.cat(parts) for parts in zip(*(batch(step, rank) for rank in ranks), strict=True))
        nn.functional.mse_loss(forward(x), y).backward()
        if clip:
            clip()
        optimizer.step()
        optimizer.zero_grad()


def alone(model: str, world_size: int, steps: int, *, max_norm: float | None = None) -> Weights:
    """What one process makes of the global batches."""
    module = models.build(model, SEED, real=True)
    optimizer = adam(groups_of(module))
    clip = None if max_norm is None else lambda: nn.utils.clip_grad_norm_(module.parameters(), max_norm)
    train(module, optimizer, range(world_size), range(steps), clip)
    return weights(module)


# -- ZeroRedundancyOptimizer -------------------------------------------------------------------------------------------


def _sharded(module: nn.Module, group: dist.ProcessGroup | None = None) -> ShardedOptimizer:
    return ShardedOptimizer(groups_of(module), torch.optim.Adam, group, lr=0.1, eps=1e-2)


def zero(ctx: RankContext, model: str, steps: int, max_norm: float | None = None) -> tuple[Weights, int]:
    """The parameters after some steps, and the bytes of this rank's optimizer state."""
    module = models.build(model, SEED, real=True)
    optimizer = _sharded(module)
    clip = None if max_norm is None else lambda: optimizer.clip_grad_norm_(max_norm)
    train(module, optimizer, [ctx.rank], range(steps), clip)
    state = [tensor for entry in optimizer.optim.state.values() for tensor in entry.values() if tensor.ndim]
    return weights(module), sum(tensor.nbytes for tensor in state)


def zero_state_bytes(model: str) -> int:
    """Adam's two moments of every parameter that learns and has a gradient."""
    module = models.build(model, SEED, real=True)
    module(batch(0, 0)[0]).sum().backward()
    return sum(2 * p.nbytes for p in module.parameters() if p.grad is not None and p.ndim)


def zero_saved(ctx: RankContext, model: str, steps: int) -> tuple[Weights, dict[str, Any]]:
    """Some steps, and the state after them."""
    module = models.build(model, SEED, real=True)
    optimizer = _sharded(module)
    train(module, optimizer, [ctx.rank], range(steps))
    return weights(module), optimizer.state_dict()


def zero_resumed(ctx: RankContext, model: str, held: Weights, state: dict[str, Any], steps: Sequence[int]) -> Weights:
    """Further steps from a saved state; every rank takes all rows, so that the global batch is what it was."""
    module = models.build(model, SEED + 1, real=True)
    module.load_state_dict(held)
    optimizer = _sharded(module)
    optimizer.load_state_dict(state)
    train(module, optimizer, [0, 1, 2], steps)
    return weights(module)


def zero_used_by_rank_0_only(ctx: RankContext) -> tuple[Tensor | None, Tensor | None]:
    """What step() leaves as gradient of a layer that only rank 0 used, and of one that nobody did."""
    used, unused = nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)
    nn.init.zeros_(used.weight)
    optimizer = ShardedOptimizer([used.weight, unused.weight], torch.optim.SGD, lr=1.0)
    if ctx.rank == 0:
        used(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return used.weight.detach(), unused.weight.grad


# -- fully sharded -----------------------------------------------------------------------------------------------------


def fsdp2(
    ctx: RankContext, model: str, steps: int, reshard_after_forward: bool, max_norm: float | None = None
) -> Weights:
    """The whole parameters after some steps."""
    module = models.build(model, SEED, real=True)
    sharded = fully_shard(module, reshard_after_forward=reshard_after_forward)
    clip = None if max_norm is None else lambda: sharded.clip_grad_norm_(max_norm)
    train(sharded, adam(groups_of(sharded)), [ctx.rank], range(steps), clip)
    return sharded.full_parameters()


def fsdp2_norm(ctx: RankContext, model: str) -> float:
    """The norm of the mean gradient of one step."""
    sharded = fully_shard(models.build(model, SEED, real=True))
    x, y = batch(0, ctx.rank)
    nn.functional.mse_loss(sharded(x), y).backward()
    return float(sharded.clip_grad_norm_(1.0))


def norm_alone(model: str, world_size: int) -> float:
    """The same in one process."""
    module = models.build(model, SEED, real=True)
    x, y = (torch.cat(parts) for parts in zip(*(batch(0, rank) for rank in range(world_size)), strict=True))
    nn.functional.mse_loss(module(x), y).backward()
    return float(nn.utils.clip_grad_norm_(module.parameters(), 1.0))


def fsdp2_saved(ctx: RankContext, model: str, steps: int) -> dict[str, Any]:
    """Some steps, and the whole state after them."""
    sharded = fully_shard(models.build(model, SEED, real=True))
    optimizer = adam(groups_of(sharded))
    train(sharded, optimizer, [ctx.rank], range(steps))
    return sharded.full_state(optimizer)


def fsdp2_resumed(ctx: RankContext, model: str, state: dict[str, Any], steps: Sequence[int]) -> Weights:
    """Further steps from a saved state, every rank on all rows."""
    sharded = fully_shard(models.build(model, SEED + 1, real=True))
    optimizer = adam(groups_of(sharded))
    sharded.load_full_state(state, optimizer)
    train(sharded, optimizer, [0, 1, 2], steps)
    return sharded.full_parameters()


def fsdp2_in_pairs(ctx: RankContext, model: str, steps: int) -> Weights:
    """Ranks 0 and 1, and ranks 2 and 3, each pair with a group and a model of its own."""
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    sharded = fully_shard(models.build(model, SEED, real=True), group=pairs[ctx.rank // 2])
    train(sharded, adam(groups_of(sharded)), [ctx.rank % 2], range(steps))
    return sharded.full_parameters()


def fsdp2_accumulated(ctx: RankContext, model: str) -> tuple[Weights, Weights]:
    """Two microbatches, the first inside no_sync, against both at once; the whole gradients."""
    found = []
    for micro in (True, False):
        sharded = fully_shard(models.build(model, SEED, real=True))
        x, y = batch(0, ctx.rank)
        if micro:
            with sharded.no_sync():
                ctx.mark("inside-begin")
                (nn.functional.mse_loss(sharded(x[:1]), y[:1]) / 2).backward()
                ctx.mark("inside-end")
            (nn.functional.mse_loss(sharded(x[1:]), y[1:]) / 2).backward()
        else:
            nn.functional.mse_loss(sharded(x), y).backward()
        found.append(
            {name: p.grad.full_tensor() for name, p in sharded.module.named_parameters() if p.grad is not None}
        )
    return found[0], found[1]


def fsdp1_trained(ctx: RankContext, model: str, strategy: str, steps: int) -> Weights:
    """The whole parameters after some steps under a strategy of FSDP1."""
    module = models.build(model, SEED, real=True)
    wrapped = fsdp1(module, strategy)
    train(wrapped, adam(groups_of(wrapped)), [ctx.rank], range(steps))
    with type(wrapped).summon_full_params(wrapped):
        return {name.replace("_fsdp_wrapped_module.", ""): value for name, value in weights(wrapped).items()}
