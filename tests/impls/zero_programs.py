"""Programs with ZeRO-1 and ZeRO-2 that the tests of `impls` run on ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fixtures.world.context import RankContext
from impls.reference import ShardedOptimizer, Zero2Optimizer
from tests.impls.programs import Zoo, backward, mean_over_ranks, same_model

STAGES: dict[str, type[ShardedOptimizer]] = {"1": ShardedOptimizer, "2": Zero2Optimizer}
CAP_MB = {"1": {}, "2": {"bucket_cap_mb": 0.0001}}  # a hundred bytes: many buckets


def two_groups(module: nn.Module) -> list[dict[str, Any]]:
    """Matrices decay, at the usual rate; the others have a rate of their own. Frozen ones are among them."""
    parameters = list(module.parameters())
    return [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.dim() <= 1], "lr": 0.02},
    ]


def alone(module: Zoo, optimizer: torch.optim.Optimizer, world_size: int, microbatches: int) -> None:
    """One step of a single process with the mean of the ranks' gradients; None where no rank has one."""
    means = mean_over_ranks(module, world_size, microbatches)
    for name, parameter in module.named_parameters():
        parameter.grad = means[name]
    optimizer.step()


def trained(ctx: RankContext, stage: str, optimizer: str, options: dict[str, Any], microbatches: int = 1) -> float:
    """Four steps, in which the learning rate changes: worst difference from a single process."""
    optimizer_cls = getattr(torch.optim, optimizer)
    module, single = same_model().eval(), same_model().eval()  # no batch statistics: they make true gradients zero
    sharded = STAGES[stage](two_groups(module), optimizer_cls, **options, **CAP_MB[stage])
    plain = optimizer_cls(two_groups(single), **options)
    for step in range(4):
        for either in (sharded, plain):
            either.param_groups[1]["lr"] = 0.02 / (step + 1)
        for microbatch in range(microbatches):
            backward(module, ctx.rank, microbatch)
        sharded.step()
        sharded.zero_grad()
        alone(single, plain, ctx.world_size, microbatches)
    return worst_difference(module, single)


def worst_difference(module: nn.Module, other: nn.Module) -> float:
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs if a.numel())
