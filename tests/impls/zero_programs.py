"""Programs with ZeRO-1 and ZeRO-2 that the tests of `impls` run on ranks."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fixtures.witness import memory
from fixtures.world.context import RankContext
from impls.reference import ShardedOptimizer, Zero2Optimizer
from tests.impls.programs import Zoo, backward, mean_over_ranks, same_model

STAGES: dict[str, type[ShardedOptimizer]] = {"1": ShardedOptimizer, "2": Zero2Optimizer}
MANY_BUCKETS: dict[str, dict[str, Any]] = {"1": {}, "2": {"bucket_cap_mb": 1e-4}}  # of a hundred bytes
OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "SGD": (torch.optim.SGD, {"lr": 0.05}),
    "momentum": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "Adam": (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.01}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.01}),  # has its state from the beginning
    "NAdam": (torch.optim.NAdam, {"lr": 0.01}),  # has two scalars in its state
}


def zoo() -> Zoo:
    """Without batch statistics, in which a bias has no true gradient: Adam would make steps of its rounding."""
    return same_model().eval()


def two_groups(module: nn.Module) -> list[dict[str, Any]]:
    """Matrices decay; the others do not, and have a rate of their own."""
    parameters = list(module.parameters())
    return [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.dim() <= 1], "lr": 0.02},
    ]


def sharded(stage: str, optimizer: str, module: nn.Module) -> ShardedOptimizer:
    optimizer_cls, options = OPTIMIZERS[optimizer]
    return STAGES[stage](two_groups(module), optimizer_cls, **options, **MANY_BUCKETS[stage])


def plain(optimizer: str, module: nn.Module) -> torch.optim.Optimizer:
    optimizer_cls, options = OPTIMIZERS[optimizer]
    return optimizer_cls(two_groups(module), **options)


def take_means(module: Zoo, world_size: int, microbatches: int = 1) -> None:
    """The gradients that a single process would have: the mean over ranks, None where no rank has one."""
    means = mean_over_ranks(module, world_size, microbatches)
    for name, parameter in module.named_parameters():
        parameter.grad = means[name]


def train(module: Zoo, optimizer: torch.optim.Optimizer, ctx: RankContext, steps: int, microbatches: int = 1) -> None:
    """`steps` steps on this rank's rows, or on all ranks' where `optimizer` is a plain one; the rates fall."""
    for step in range(steps):
        optimizer.param_groups[1]["lr"] = 0.02 / (step + 1)
        if isinstance(optimizer, ShardedOptimizer):
            for microbatch in range(microbatches):
                backward(module, ctx.rank, microbatch)
        else:
            take_means(module, ctx.world_size, microbatches)
        optimizer.step()
        optimizer.zero_grad()


def worst_difference(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    pairs = zip(ours, theirs, strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs if a.numel())


def difference(module: nn.Module, other: nn.Module) -> float:
    return worst_difference(list(module.parameters()), list(other.parameters()))


# -- values ------------------------------------------------------------------------------------------------------------


def trained(ctx: RankContext, stage: str, optimizer: str, microbatches: int) -> tuple[float, Tensor]:
    """Worst difference from a single process after four steps, and all parameters in one."""
    module, single = zoo(), zoo()
    train(module, sharded(stage, optimizer, module), ctx, 4, microbatches)
    train(single, plain(optimizer, single), ctx, 4, microbatches)
    return difference(module, single), torch.cat([p.detach().flatten().double() for p in module.parameters()])


class Oddly(nn.Module):
    """A vector of `numel` elements, a number, and nothing."""

    def __init__(self, numel: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.arange(numel).to(dtype))
        self.number = nn.Parameter(torch.ones((), dtype=dtype))
        self.nothing = nn.Parameter(torch.empty(0, 2, dtype=dtype))

    def forward(self, rank: int) -> Tensor:
        return (self.vector.abs().sum() + self.number.abs() * 3 + self.nothing.abs().sum()) * (2 * rank + 1)


def few_elements(ctx: RankContext, stage: str, numel: int, dtype: torch.dtype) -> tuple[list[Tensor], int]:
    """Parameters after a step of SGD, whose rate makes up for the mean of 2 rank + 1; elements of this rank."""
    module = Oddly(numel, dtype)
    optimizer = STAGES[stage](module.parameters(), torch.optim.SGD, lr=1 / ctx.world_size)
    module(ctx.rank).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    held = sum(piece.end - piece.begin for flat in optimizer._flats for piece in flat.pieces)
    return [p.detach() for p in module.parameters()], held


def no_gradient_and_zero_gradient(ctx: RankContext, stage: str) -> list[Tensor]:
    """Three parameters that start at 1 and decay by half a step: no gradient anywhere, a zero one, a -0.0 on rank 0."""
    parameters = [nn.Parameter(torch.ones(5)) for _ in range(3)]
    optimizer = STAGES[stage](parameters, torch.optim.SGD, lr=0.5, weight_decay=1.0)
    parameters[1].grad = torch.zeros(5)
    if ctx.rank == 0:
        parameters[2].grad = torch.full((5,), -0.0)
    optimizer.step()
    return [parameter.detach() for parameter in parameters]


def used_once(ctx: RankContext, clear: str) -> Tensor:
    """Two steps with momentum, the second of them without a gradient on any rank; cleared by the module or by us."""
    weight = nn.Parameter(torch.zeros(5))
    optimizer = ShardedOptimizer([weight], torch.optim.SGD, lr=1.0, momentum=0.9)
    weight.sum().backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    if clear == "module":
        weight.grad = None
    else:
        optimizer.zero_grad()
    optimizer.step()
    return weight.detach()


def clipped(ctx: RankContext, stage: str, max_norm: float) -> tuple[float, float, int]:
    """Worst difference from a single process that clips; of the norms; and how often gradients were reduced."""
    module, single = zoo(), zoo()
    ours, theirs = sharded(stage, "momentum", module), plain("momentum", single)
    for _ in range(2):
        backward(module, ctx.rank)
        take_means(single, ctx.world_size)
        norm = ours.clip_grad_norm_(max_norm)
        ctx.mark("clipped")
        expected = nn.utils.clip_grad_norm_(single.parameters(), max_norm)
        for optimizer in (ours, theirs):
            optimizer.step()
            optimizer.zero_grad()
    return difference(module, single), abs(float(norm) - float(expected)) / float(expected), len(ours._flats)


def bf16(ctx: RankContext, stage: str) -> tuple[float, list[str]]:
    """Forty steps too small for bfloat16: how far the mean parameter moved; the dtypes of the state."""
    parameter = nn.Parameter(torch.ones(7, dtype=torch.bfloat16))
    optimizer = STAGES[stage]([parameter], torch.optim.Adam, lr=1e-3)
    for _ in range(40):
        parameter.grad = torch.full_like(parameter, ctx.rank + 1.0)
        optimizer.step()
        optimizer.zero_grad()
    held = optimizer.state_held()["optimizer"]
    return float(1 - parameter.float().mean()), sorted({str(tensor.dtype) for tensor in held})


# -- parameters that change --------------------------------------------------------------------------------------------


def frozen_then_thawed(ctx: RankContext, stage: str, optimizer: str) -> tuple[float, float, bool]:
    """A layer is frozen, thawed after two steps, and another frozen then; worst differences from a single process."""
    module, single = zoo(), zoo()
    for net in (module, single):
        net.first.requires_grad_(False)
    ours, theirs = sharded(stage, optimizer, module), plain(optimizer, single)
    before = module.first.weight.detach().clone()
    train(module, ours, ctx, 2)
    train(single, theirs, ctx, 2)
    untouched = torch.equal(before, module.first.weight.detach()) and module.first.weight not in ours._flat_of
    early = difference(module, single)
    for net in (module, single):
        net.first.requires_grad_(True)
        net.shared.requires_grad_(False)
    train(module, ours, ctx, 2)
    train(single, theirs, ctx, 2)
    return early, difference(module, single), untouched


def added_later(ctx: RankContext, stage: str) -> float:
    module, single = zoo(), zoo()
    pairs = []
    for net, make in ((module, STAGES[stage]), (single, None)):
        groups = two_groups(net)
        options: dict[str, Any] = {"lr": 0.05, "momentum": 0.9}
        optimizer = make(groups[:1], torch.optim.SGD, **options) if make else torch.optim.SGD(groups[:1], **options)
        optimizer.add_param_group(groups[1])
        pairs.append((net, optimizer))
    for net, optimizer in pairs:
        train(net, optimizer, ctx, 2)
    return difference(module, single)


def in_a_group(ctx: RankContext, stage: str) -> float:
    """All ranks but the first are a group, and train together."""
    group = dist.new_group(list(range(1, ctx.world_size)))
    if ctx.rank == 0:
        return 0.0
    weight = nn.Parameter(torch.zeros(5))
    optimizer = STAGES[stage]([weight], torch.optim.SGD, group=group, lr=1.0)
    (weight * ctx.rank).sum().backward()  # type: ignore[no-untyped-call]
    optimizer.clip_grad_norm_(1e6)
    optimizer.step()
    optimizer.state_dict()
    return float((weight + ctx.world_size / 2).detach().abs().max())


def written_from_outside(ctx: RankContext, stage: str, dtype: torch.dtype, how: str) -> Tensor:
    """Parameters 1, 1, 1 become 4, 4, 4 after a step, then there is a step of 1."""
    layer = nn.Linear(3, 1, bias=False, dtype=dtype)
    optimizer = STAGES[stage](layer.parameters(), torch.optim.SGD, lr=1.0)
    for written in (False, True):
        if written and how == "data":
            layer.weight.data = torch.full((1, 3), 4.0, dtype=dtype)
        elif written:
            layer.load_state_dict({"weight": torch.full((1, 3), 4.0, dtype=dtype)})
        layer.weight.grad = torch.ones_like(layer.weight)
        optimizer.step()
        optimizer.zero_grad()
    return layer.weight.detach().float()


# -- memory ------------------------------------------------------------------------------------------------------------


def held_bytes(ctx: RankContext, stage: str, dtype: torch.dtype) -> tuple[dict[str, int], int, int, int]:
    """By category after backward and a step; all other tensors alive; parameters; and the pieces of this rank."""
    gc.collect()
    before = memory.weigh("before", others=True).categories["other"]
    module = nn.Sequential(nn.Linear(9, 33, dtype=dtype), nn.Linear(33, 11, dtype=dtype))
    optimizer = STAGES[stage](module.parameters(), torch.optim.Adam, **MANY_BUCKETS[stage])
    for _ in range(2):
        optimizer.zero_grad()
        module(torch.ones(2, 9, dtype=dtype)).sum().backward()
        optimizer.step()
    gc.collect()
    found = dict(memory.weigh("after", **optimizer.state_held(), others=True).categories)
    num_pieces = sum(len(flat.pieces) for flat in optimizer._flats)
    return found, found.pop("other") - before, sum(p.numel() for p in module.parameters()), num_pieces


def one_step(ctx: RankContext, stage: str, numel: int, dtype: torch.dtype) -> None:
    """One step over a parameter of `numel` elements, its operations after the mark."""
    parameter = nn.Parameter(torch.ones(numel, dtype=dtype))
    optimizer = STAGES[stage]([parameter], torch.optim.SGD, lr=1.0)
    ctx.mark("step")
    parameter.sum().backward()  # type: ignore[no-untyped-call]
    optimizer.step()


# -- as an optimizer of torch ------------------------------------------------------------------------------------------


def scheduled(ctx: RankContext, stage: str) -> float:
    """Under a scheduler that halves the rate: 1 + 1/2 + 1/4, with a closure for the gradients."""
    weight = nn.Parameter(torch.zeros(3))
    optimizer = STAGES[stage]([("weight", weight)], torch.optim.SGD, lr=1.0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = weight.sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    losses = []
    for _ in range(3):
        losses.append(float(optimizer.step(closure)))
        scheduler.step()
    return float((weight + 1.75).detach().abs().max()) + worst_difference(
        [torch.tensor(losses)], [torch.tensor([0, -3, -4.5])]
    )


def refused(ctx: RankContext, what: str) -> None:
    """Something that cannot work."""
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    if what == "LBFGS":
        ShardedOptimizer(layer.parameters(), torch.optim.LBFGS)
    elif what == "tied by data":
        other.weight.data = layer.weight.data
        ShardedOptimizer([*layer.parameters(), *other.parameters()], torch.optim.SGD)
    elif what == "cast":
        optimizer = ShardedOptimizer(layer.parameters(), torch.optim.SGD)
        layer.double()
        optimizer.step()
    elif what == "two groups":
        ShardedOptimizer([{"params": [layer.weight]}, {"params": [layer.weight]}], torch.optim.SGD)
