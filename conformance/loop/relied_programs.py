"""Rank programs for what users of a wrapper rely on without saying so: see ``test_relied``. Imports no pytest."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from conformance.asks import asks_for
from conformance.groups import own_group
from conformance.loop.programs import Values, gradients, parameters, replica
from fixtures import models
from fixtures.world.context import RankContext

SHAPES = [[5], [3, 2]]  # of a small `models.Bag`
Weights = list[list[Tensor]]  # of a rank: for each step the coefficients, which become its gradients


class Bent(nn.Module):
    """Takes a keyword argument, keeps a frozen parameter, drops elements, and behaves differently in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(models.FEATURES, models.FEATURES)
        self.offset = nn.Parameter(torch.ones(models.FEATURES), requires_grad=False)
        self.dropout = nn.Dropout()

    def forward(self, x: Tensor, *, gain: float = 1.0) -> dict[str, Tensor]:
        """[rows, FEATURES] to two results of as many."""
        out = self.dropout(self.layer(x)) + self.offset
        return {"scaled": out * gain, "plain": out if self.training else -out}


def called(ctx: RankContext, seed: int, rows: Tensor, *, training: bool) -> dict[str, Any]:
    """A forward and a backward pass of the wrapper and of the bare module, with a keyword, up to the input.

    Both draw from torch's global generator, which is in one state before and should be after.
    """
    module = models.fill(Bent(), seed)
    module.train(training)
    built: Any = replica(ctx, module)
    report = {"training": module.training, "learns": [p.requires_grad for p in built.module.parameters()]}
    bare = copy.deepcopy(built.module) if isinstance(built.module, Bent) else module
    found = []
    for called in (built, bare):
        x = rows.clone().requires_grad_()
        torch.manual_seed(seed)
        out = called(x, gain=3.0)
        out["scaled"].sum().backward()
        seen = {"scaled": out["scaled"].detach(), "plain": out["plain"].detach(), "input": x.grad}
        found.append({**seen, "next draw": torch.rand(2)})
    built.finish()
    with torch.no_grad():
        report["graph"] = bool(built(models.rows(2, 1), gain=1.0)["plain"].requires_grad)
    return {**report, "wrapped": found[0], "bare": found[1]}


def _step(built: Any, weights: Sequence[Tensor]) -> Values:
    built.module.zero_grad(set_to_none=True)
    built(models.packed(weights)).backward()
    built.finish()
    return gradients(built.module)


def _bag(ctx: RankContext, shapes: list[list[int]], **options: Any) -> Any:
    return replica(ctx, models.Bag(shapes, [False] * len(shapes)), **options)


def evaluated(ctx: RankContext, weights: Weights) -> list[Values]:
    """A step with everything in evaluation mode, then a pass without gradients, then a step in training mode."""
    built = _bag(ctx, SHAPES)
    wrapper = getattr(built, "wrapper", built.module)
    wrapper.train(False) if isinstance(wrapper, nn.Module) else built.module.eval()
    found = [_step(built, weights[0])]
    with torch.no_grad():
        built(models.packed(weights[1]))
    wrapper.train(True) if isinstance(wrapper, nn.Module) else built.module.train()
    return [*found, _step(built, weights[2])]


def looked_at(ctx: RankContext, weights: Weights) -> list[Values]:
    """Steps with a pass without gradients between forward and backward, as of a teacher or for a log."""
    built = _bag(ctx, SHAPES)
    found = []
    for of_step, looked in zip(weights[::2], weights[1::2], strict=True):
        built.module.zero_grad(set_to_none=True)
        loss = built(models.packed(of_step))
        with torch.no_grad():
            built(models.packed(looked))
        loss.backward()
        built.finish()
        found.append(gradients(built.module))
    return found


def side_by_side(ctx: RankContext, weights: Weights) -> list[Values]:
    """Two wrapped modules and one backward pass through both, twice; the second has its shapes in reverse."""
    first, second = _bag(ctx, SHAPES), _bag(ctx, SHAPES[::-1])
    found = []
    for step in range(2):
        for built in (first, second):
            built.module.zero_grad(set_to_none=True)
        one = first(models.packed(weights[2 * step]))
        two = second(models.packed(weights[2 * step + 1]))
        (one + two).backward()
        first.finish()
        second.finish()
        found += [gradients(first.module), gradients(second.module)]
    return found


def backward_twice(ctx: RankContext, weights: Weights) -> dict[str, Values]:
    """A step whose graph is kept and gone through twice, and a plain one after it."""
    built = _bag(ctx, SHAPES)
    loss = built(models.packed(weights[0]))
    for keeps in (True, False):
        loss.backward(retain_graph=keeps)
        built.finish()
    return {"both": gradients(built.module), "next": _step(built, weights[1])}


def interrupted(ctx: RankContext, weights: Weights) -> list[Values]:
    """A step after an exception inside ``no_sync()``, as when a batch is skipped."""
    built = _bag(ctx, SHAPES)
    with contextlib.suppress(OverflowError), built.no_sync():
        raise OverflowError
    return steps(ctx, weights, built)


def steps(ctx: RankContext, weights: Weights, built: Any = None) -> list[Values]:
    """Plain steps, one for each of the weights."""
    built = _bag(ctx, SHAPES) if built is None else built
    return [_step(built, of_step) for of_step in weights]


def transposed(ctx: RankContext, weights: Weights) -> list[Values]:
    """A step with parameters that lie column by column, as those of a convolution in ``channels_last``."""
    module = models.Bag(SHAPES, [False] * len(SHAPES))
    for parameter in module.parameters():
        parameter.data = parameter.data.mT.contiguous().mT if parameter.dim() > 1 else parameter.data
    return steps(ctx, weights, replica(ctx, module))


def in_groups(ctx: RankContext, groups: list[list[int]], seed: int, weights: Weights) -> dict[str, Any]:
    """Each group of ranks has a replica of its own: what it holds after construction, and its gradients."""
    if not asks_for(ctx.impl, "DataParallel", "group"):
        return {"takes_group": False}
    with own_group(groups) as group:
        module = models.Bag(SHAPES, [False] * len(SHAPES))
        models.fill(module, seed)
        before = parameters(module)
        built = replica_in(ctx, module, group)
        after = parameters(built.module)
        return {"takes_group": True, "before": before, "after": after, "step": _step(built, weights[0])}


def replica_in(ctx: RankContext, module: nn.Module, group: dist.ProcessGroup) -> Any:
    """`module` wrapped for a group that is not the whole world."""
    from impls.normalise import Wrapped

    assert ctx.impl is not None
    return Wrapped(ctx.impl, module, dist.get_world_size(group), group)
