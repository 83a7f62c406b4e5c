"""Programs about backward under ZeRO-2, run on ranks."""

from __future__ import annotations

import gc

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from fixtures.world.context import RankContext
from impls.reference import Zero2Optimizer
from tests.impls.programs import backward
from tests.impls.zero_programs import difference, take_means, worst_difference, zoo


def gradients_alive(ctx: RankContext) -> list[int]:
    """ZeRO-2, a bucket for each of four layers: at each layer's gradient, how many parameters have one."""
    layers = nn.Sequential(*[nn.Linear(4, 4, bias=False) for _ in range(4)])
    optimizer = Zero2Optimizer(layers.parameters(), torch.optim.SGD, lr=1.0, bucket_cap_mb=0)
    alive: list[int] = []
    for layer in layers:
        layer.register_full_backward_hook(
            lambda *_: alive.append(
                sum(p.grad is not None for p in layers.parameters())
                + sum(flat._incoming is not None for flat in optimizer._flats)
            )
        )
    layers(torch.ones(1, 4, requires_grad=True)).sum().backward()
    return [*alive, sum(p.grad is not None for p in layers.parameters())]


def after_backward(ctx: RankContext) -> tuple[int, float]:
    """Gradients left on the module, and the worst difference of the shards, put together, from the mean."""
    module, single = zoo(), zoo()
    optimizer = Zero2Optimizer(module.parameters(), torch.optim.SGD, lr=1.0)
    backward(module, ctx.rank)
    take_means(single, ctx.world_size)
    left = sum(p.grad is not None for p in module.parameters())
    theirs = {ours: p.grad for ours, p in zip(module.parameters(), single.parameters(), strict=True)}
    worst = 0.0
    for flat in optimizer._flats:
        for piece in flat.pieces:
            expected = theirs[piece.parameter]
            if (piece in flat.used) != (expected is not None):
                return left, float("inf")
            if expected is not None and flat.gradient is not None:
                part = expected.flatten()[piece.begin : piece.end]
                worst = max(worst, worst_difference([flat.gradient[piece.within_shard]], [part]))
    return left, worst


def rank_without_backward(ctx: RankContext, told: bool) -> float:
    """Two microbatches; rank 0 has nothing to differentiate in the second, or (not told) in the only one."""
    weight = nn.Parameter(torch.zeros(3))
    optimizer = Zero2Optimizer([weight], torch.optim.SGD, lr=1.0)
    for microbatch in range(1 + told):
        if ctx.rank or microbatch < told:
            weight.sum().backward()  # type: ignore[no-untyped-call]
        if told:
            optimizer.sync_grads()
    optimizer.step()
    return float((weight + (ctx.world_size - 1) / ctx.world_size + told).detach().abs().max())


def in_any_order(ctx: RankContext) -> float:
    """Gradients come in another order on every rank, and each parameter is a bucket."""
    weights = [nn.Parameter(torch.zeros(2)) for _ in range(4)]
    optimizer = Zero2Optimizer(weights, torch.optim.SGD, lr=1.0, bucket_cap_mb=0)
    x = torch.ones(2)
    for i in range(4):
        number = (i + ctx.rank) % 4
        x = x + (number + 1) * weights[number] * x.detach()
    x.sum().backward()
    optimizer.step()
    return worst_difference(weights, [torch.full((2,), -float(i + 1)) for i in range(4)])


def after_an_exception(ctx: RankContext, clear: bool) -> float:
    """A backward dies half way on every rank; the next one counts alone."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    optimizer = Zero2Optimizer(layers.parameters(), torch.optim.SGD, lr=1.0, bucket_cap_mb=0)

    def fail(_: Tensor) -> None:
        raise ArithmeticError

    hidden = layers[0](torch.ones(1, 2))
    hidden.register_hook(fail)
    try:
        layers[1](hidden).sum().backward()
    except ArithmeticError:
        if clear:
            optimizer.zero_grad()
    before = layers[1].bias.detach().clone()
    layers(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return float((before - layers[1].bias.detach() - 1).abs().max())


def recomputed(ctx: RankContext, use_reentrant: bool) -> float:
    """The same layer twice, once of them under checkpoint."""
    torch.manual_seed(0)
    layer, single = nn.Linear(2, 2), nn.Linear(2, 2)
    single.load_state_dict(layer.state_dict())
    optimizer = Zero2Optimizer(layer.parameters(), torch.optim.SGD, lr=1.0)
    x = torch.ones(1, 2, requires_grad=True)
    checkpoint(layer, layer(x), use_reentrant=use_reentrant).sum().backward()
    single(single(x)).sum().backward()
    optimizer.step()
    torch.optim.SGD(single.parameters(), lr=1.0).step()
    return difference(layer, single)


def forgotten(ctx: RankContext) -> bool:
    """Whether an optimizer that nobody holds any more leaves the gradients alone."""
    layer = nn.Linear(2, 1)
    optimizer = Zero2Optimizer(layer.parameters(), torch.optim.SGD, lr=1.0)
    del optimizer
    gc.collect()
    layer(torch.ones(1, 2)).sum().backward()
    return layer.weight.grad is not None
