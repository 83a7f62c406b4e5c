"""Programs with ZeRO-3 that the tests of `impls` run on ranks: values, and units in unusual use."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from fixtures.world.context import RankContext
from impls.reference import fully_shard
from tests.impls.fsdp_training import (
    difference,
    gradient_error,
    layers,
    loss_of,
    mean_gradients,
    menagerie,
    optimizer_of,
    train,
    train_alone,
    whole_gradients,
)

# -- values ------------------------------------------------------------------------------------------------------------


def trained(ctx: RankContext, optimizer: str, options: dict[str, Any]) -> float:
    """Four steps, every other one of two microbatches."""
    alone, steps = menagerie(), range(4)
    train_alone(alone, optimizer_of(alone, optimizer), ctx.world_size, steps)
    model = fully_shard(menagerie(), **options)
    train(model, optimizer_of(model, optimizer), ctx.rank, steps)
    return difference(model.full_parameters(), alone)


def gradients(ctx: RankContext, options: dict[str, Any]) -> float:
    model = fully_shard(menagerie(), **options)
    loss_of(model, ctx.rank).backward()
    return gradient_error(model, mean_gradients(menagerie(), ctx.world_size))


def two_forwards(ctx: RankContext, options: dict[str, Any], together: bool) -> float:
    """Two forward passes before the first backward."""
    model = fully_shard(menagerie(), **options)
    losses = [loss_of(model, ctx.rank, microbatch) for microbatch in range(2)]
    if together:
        sum(losses).backward()
    else:
        losses[0].backward()
        losses[1].backward()
    return gradient_error(model, mean_gradients(menagerie(), ctx.world_size, microbatches=2))


def backward_twice(ctx: RankContext) -> float:
    """One graph, two backward passes."""
    model = fully_shard(menagerie())
    loss = loss_of(model, ctx.rank)
    loss.backward(retain_graph=True)
    loss.backward()
    means = mean_gradients(menagerie(), ctx.world_size)
    return gradient_error(model, {name: None if mean is None else 2 * mean for name, mean in means.items()})


def few_elements(ctx: RankContext, numel: int, dtype: torch.dtype) -> tuple[dict[str, Tensor], list[int]]:
    """Parameters of `numel` elements and of none; what they are after a step, and how much of them this rank held."""

    class Vector(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vector = nn.Parameter(torch.arange(numel).to(dtype))
            self.nothing = nn.Parameter(torch.empty(0, 2, dtype=dtype))

        def forward(self) -> Tensor:
            return (self.vector[1:] * ctx.rank).sum().real + self.nothing.sum().real

    model = fully_shard(Vector())
    optimizer = torch.optim.SGD(model.parameters(), lr=2)
    model().backward()
    optimizer.step()
    return model.full_parameters(), [parameter.numel() for parameter in model.parameters()]


def sub_group(ctx: RankContext) -> float:
    """Sharded over the odd ranks only, whose mean it is."""
    odd = list(range(1, ctx.world_size, 2))
    group = dist.new_group(odd)
    if ctx.rank not in odd:
        return 0.0
    model = fully_shard(nn.Linear(1, 3, bias=False), group=group)
    model(torch.full((1, 1), float(ctx.rank))).sum().backward()
    gradient = whole_gradients(model, group)["weight"]
    assert gradient is not None
    return float((gradient - sum(odd) / len(odd)).abs().max())


def clipped(ctx: RankContext, max_norm: float) -> tuple[float, float, float]:
    """The norm that it had, that of a single process, and the error of the clipped gradient."""
    model, alone = fully_shard(menagerie()), menagerie()
    loss_of(model, ctx.rank).backward()
    means = mean_gradients(alone, ctx.world_size)
    for name, parameter in alone.named_parameters():
        parameter.grad = means[name]
    norms = float(model.clip_grad_norm_(max_norm)), float(nn.utils.clip_grad_norm_(alone.parameters(), max_norm))
    return *norms, gradient_error(model, {name: parameter.grad for name, parameter in alone.named_parameters()})


# -- units -------------------------------------------------------------------------------------------------------------


def left_out_of_the_loss(ctx: RankContext, everywhere: bool) -> tuple[list[Tensor | None], list[float]]:
    """The middle one of three units is called, but has no part in the loss of rank 0, or in that of any rank."""

    class Middle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.middle, self.last = (nn.Linear(1, 1, bias=False) for _ in range(3))
            for layer in self.children():
                nn.init.ones_(layer.weight)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            middle = self.middle(x)
            return self.last(x if everywhere or ctx.rank == 0 else middle)

    model = fully_shard(Middle())
    model(torch.full((1, 1), 2.0)).sum().backward()
    return list(whole_gradients(model).values()), [float(p.sum()) for p in model.full_parameters().values()]


def another_order(ctx: RankContext) -> float:
    """Later passes leave units out or call them in another order, so what is prefetched is not what is used."""
    torch.manual_seed(0)
    module = nn.ModuleDict({name: nn.Linear(3, 3) for name in "abcd"})

    class Path(nn.Module):
        def __init__(self, layers: nn.ModuleDict) -> None:
            super().__init__()
            self.layers = layers

        def forward(self, x: Tensor, path: str) -> Tensor:
            for name in path:
                x = self.layers[name](x)
            return x

    alone, model = Path(copy.deepcopy(module)), fully_shard(Path(module))
    x = torch.ones(2, 3)
    for path in ("abcd", "abd", "dcba", "aabb", "abcd", ""):
        (model(x, path).sum() + 0 * x.sum().requires_grad_()).backward()
        (alone(x, path).sum() + 0 * x.sum().requires_grad_()).backward()
    return gradient_error(model, {name: parameter.grad for name, parameter in alone.named_parameters()})


def nested_units(ctx: RankContext) -> None:
    """A unit that calls another one, which it was handed over behind PyTorch's back."""

    class Outer(nn.Module):
        def __init__(self, other: nn.Module) -> None:
            super().__init__()
            self.own, self.others = nn.Linear(2, 2), [other]

        def forward(self, x: Tensor) -> Tensor:
            return self.own(self.others[0](x))

    layer = nn.Linear(2, 2)
    fully_shard(nn.Sequential(layer, Outer(layer)))(torch.ones(1, 2))


def checkpointed(ctx: RankContext, where: str, options: dict[str, Any]) -> float:
    """Activations are computed again in backward: around a unit, inside it, around two units, around everything."""

    class Inside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return torch.tanh(self.second(torch.tanh(self.first(x))))

    class Outside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(Inside() for _ in range(3))
            self.tied = self.blocks[0].first.weight  # so it belongs to the root, and is needed in the blocks

        def forward(self, x: Tensor) -> Tensor:
            if where == "around two":
                x = checkpoint(nn.Sequential(*self.blocks[:2]), x, use_reentrant=False)
                return self.blocks[2](x)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False) if where == "around" else block(x)
            return x

    torch.manual_seed(0)
    module = Outside()
    alone = copy.deepcopy(module)
    if where == "inside":
        for block in module.blocks:
            plain = block.forward
            block.forward = lambda x, plain=plain: checkpoint(plain, x, use_reentrant=False)  # type: ignore[method-assign]
    model = fully_shard(module, **options)
    x = torch.ones(2, 4, requires_grad=True)
    out = checkpoint(model, x, use_reentrant=False) if where == "everything" else model(x)
    out.square().sum().backward()
    alone(torch.ones(2, 4)).square().sum().backward()
    assert not any(unit.is_gathered for unit in model._units)
    return gradient_error(model, {name: parameter.grad for name, parameter in alone.named_parameters()})


def after_an_exception(ctx: RankContext, in_backward: bool) -> float:
    """A pass that dies half way on every rank must not spoil the next step, nor keep units whole."""
    model = fully_shard(layers(width=3))

    def fail(*_: Any) -> None:
        raise ArithmeticError

    def fail_later(_: nn.Module, args: tuple[Tensor]) -> None:
        args[0].register_hook(fail)

    hook = model.module[2].register_forward_pre_hook(fail_later if in_backward else fail)
    try:
        model(torch.ones(1, 3)).sum().backward()
    except ArithmeticError:
        hook.remove()
        model.zero_grad()
    model(torch.ones(1, 3)).sum().backward()
    alone = layers(width=3)
    alone(torch.ones(1, 3)).sum().backward()
    return gradient_error(model, {name: parameter.grad for name, parameter in alone.named_parameters()})


def cast_afterwards(ctx: RankContext) -> None:
    fully_shard(nn.Linear(2, 2)).double()(torch.ones(1, 2, dtype=torch.float64))
