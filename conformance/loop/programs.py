"""Rank programs that build, wrap and train a replica, in whatever form an implementation has it.

They report what is in the module after each step; what is right is decided elsewhere. Nothing here imports pytest.
"""

from __future__ import annotations

import contextlib
import time
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fixtures import models
from fixtures.world.context import RankContext
from impls.normalise import Wrapped

Rows = tuple[Tensor, Tensor]  # inputs and targets of one forward pass
Batches = list[list[list[Rows]]]  # step, rank, microbatch
OwnBatches = list[list[Rows]]  # step, microbatch: what one rank has of them
Values = dict[str, Tensor | None]


class Pieces:
    """A replica of an implementation that has functions only: `broadcast_parameters`, `average_gradients`."""

    def __init__(self, ctx: RankContext, module: nn.Module) -> None:
        self._ctx = ctx
        self.module = module
        if ctx.impl is not None and ctx.impl.get("broadcast_parameters") is not None:
            ctx.impl.call("broadcast_parameters", module=module, src=0, world_size=ctx.world_size, group=None)

    def __call__(self, *args: Any) -> Any:
        """The forward pass."""
        return self.module(*args)

    def finish(self, optimizer: Any = None) -> None:
        """Average the gradients."""
        assert self._ctx.impl is not None
        self._ctx.impl.call("average_gradients", module=self.module, world_size=self._ctx.world_size, group=None)

    def no_sync(self) -> AbstractContextManager[None]:
        """Functions reduce when they are called, and not before."""
        return contextlib.nullcontext()


def replica(ctx: RankContext, module: nn.Module, **options: Any) -> Wrapped | Pieces:
    """`module` under the implementation's data parallelism; `options` go to its constructor."""
    assert ctx.impl is not None
    if ctx.impl.get("DataParallel") is None:
        return Pieces(ctx, module)
    return Wrapped(ctx.impl, module, ctx.world_size, **options)


def state(module: nn.Module) -> Values:
    """Copies of all parameters and buffers, tied ones under each of their names."""
    return {**parameters(module), **{name: _copy(buffer) for name, buffer in module.named_buffers()}}


def parameters(module: nn.Module) -> Values:
    """Copies of the parameters, tied ones under each of their names."""
    return {name: _copy(parameter) for name, parameter in module.named_parameters(remove_duplicate=False)}


def gradients(module: nn.Module) -> Values:
    """Copies of the gradients, tied ones once; None where there is none."""
    return {
        name: None if parameter.grad is None else _copy(parameter.grad) for name, parameter in module.named_parameters()
    }


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def construct(ctx: RankContext, model: str, *, seed: int, dtype: torch.dtype | None = None) -> dict[str, Any]:
    """Wrap a model whose values differ between ranks, by their seeds: what it held before and after."""
    module = models.build(model, seed, dtype)
    before, held = state(module), list(module.parameters())  # as an optimizer built beforehand holds them
    built = replica(ctx, module)
    tied = len(list(built.module.parameters())) < len(list(built.module.named_parameters(remove_duplicate=False)))
    now = {id(parameter) for parameter in built.module.parameters()}
    kept = [id(parameter) in now for parameter in held]
    return {"before": before, "after": state(built.module), "tied": tied, "kept": kept}


def train(
    ctx: RankContext,
    model: str,
    batches: OwnBatches,
    *,
    seed: int,
    loss: str = "weighted",
    scale: float = 1.0,
    rates: list[float] | None = None,
    momentum: float = 0.0,
    dtype: torch.dtype | None = None,
    real: bool = False,
    set_to_none: bool = True,
    accumulate: str = "no_sync",
    active: bool | None = None,
    bucket_cap_mb: float | None = None,
    save_after: int = -1,
) -> dict[str, Any]:
    """Train from weights of the rank's own seed; returns gradients after each step, losses, and the parameters.

    ``accumulate`` says how a step with several microbatches runs: "no_sync" (all but the last in it), "each" (a
    reduction for each of them), "late-finish" (a backward for each, and one call that finishes) or "one-backward" (all
    forward passes, then one backward). ``rates`` has the learning
    rate of each step; without it nothing is learnt. After step ``save_after`` the replica is saved, thrown away and
    loaded into a fresh one.
    """
    module = models.build(model, seed, dtype, real=real)
    if active is not None:
        module.active = active  # type: ignore[assignment]  # a plain flag of models.Optional
    built = replica(ctx, module, bucket_cap_mb=bucket_cap_mb)
    optimizer = torch.optim.SGD(built.module.parameters(), lr=1.0, momentum=momentum)
    criterion = partial(models.LOSSES[loss], scale=scale)
    losses, seen = [], []
    for step, own in enumerate(batches):
        optimizer.zero_grad(set_to_none=set_to_none)
        ctx.mark("step-begin", str(step))
        micro = [(x.to(dtype) if dtype else x, t) for x, t in own]
        losses.append(_ACCUMULATE[accumulate](ctx, built, micro, optimizer, criterion))
        ctx.mark("step-end", str(step))
        seen.append(gradients(built.module))
        if rates is not None:
            optimizer.param_groups[0]["lr"] = rates[step]
            optimizer.step()
        if step == save_after:
            built, optimizer = _reloaded(ctx, built, optimizer, models.build(model, seed + 77, dtype))
    return {"gradients": seen, "losses": losses, "parameters": parameters(built.module)}


def _reloaded(ctx: RankContext, built: Any, optimizer: Any, fresh: nn.Module) -> tuple[Any, Any]:
    saved, saved_optimizer = built.module.state_dict(), optimizer.state_dict()
    fresh.load_state_dict({name: tensor.clone() for name, tensor in saved.items()})
    again = replica(ctx, fresh)
    resumed = torch.optim.SGD(again.module.parameters(), lr=1.0)
    resumed.load_state_dict(saved_optimizer)
    return again, resumed


# -- one step with microbatches ----------------------------------------------------------------------------------------


def _with_no_sync(ctx: RankContext, built: Any, micro: list[Rows], optimizer: Any, loss: Any) -> float:
    total = 0.0
    if len(micro) > 1:
        with built.no_sync():
            for x, target in micro[:-1]:
                total += _backward(loss(built(x), target))
        ctx.mark("no-sync-end")
    x, target = micro[-1]
    total += _backward(loss(built(x), target))
    built.finish(optimizer)
    return total


def _each(ctx: RankContext, built: Any, micro: list[Rows], optimizer: Any, loss: Any) -> float:
    total = 0.0
    for x, target in micro:
        total += _backward(loss(built(x), target))
        built.finish(optimizer)
    return total


AHEAD_S = 0.5  # how long the last rank lets the others go ahead: those that reduce in backward() wait for it anyhow


def _late_finish(ctx: RankContext, built: Any, micro: list[Rows], optimizer: Any, loss: Any) -> float:
    """The other ranks are through with the last backward before the last rank begins with its first.

    So what they sent in the one before is still under way while the next one adds to the same gradients. On the last
    rank nothing is under way between two of them: else both errors may cancel out.
    """
    signs = [ctx.rendezvous_file() for _ in range(ctx.world_size)]
    is_last = ctx.rank == ctx.world_size - 1
    total = 0.0
    if is_last:
        _wait_for(signs[:-1], AHEAD_S)
    for x, target in micro:
        total += _backward(loss(built(x), target))
        if is_last:
            ctx.settle(AHEAD_S)
    signs[ctx.rank].touch()
    built.finish(optimizer)
    return total


def _wait_for(files: list[Path], limit_s: float) -> None:
    until = time.monotonic() + limit_s
    while not all(file.exists() for file in files) and time.monotonic() < until:
        time.sleep(0.001)


def _one_backward(ctx: RankContext, built: Any, micro: list[Rows], optimizer: Any, loss: Any) -> float:
    total = _backward(sum(loss(built(x), target) for x, target in micro))
    built.finish(optimizer)
    return total


_ACCUMULATE = {"no_sync": _with_no_sync, "each": _each, "late-finish": _late_finish, "one-backward": _one_backward}


def _backward(loss: Any) -> float:
    loss.backward()
    return float(loss.detach())


def bag(
    ctx: RankContext,
    shapes: list[list[int]],
    frozen: list[bool],
    used: list[bool],
    weights: list[list[Tensor]],
    *,
    bucket_cap_mb: float | None,
) -> list[Values]:
    """Steps of a `models.Bag` with this rank's coefficients for each step, which are its gradients."""
    built = replica(ctx, models.Bag(shapes, frozen), bucket_cap_mb=bucket_cap_mb)
    found = []
    for of_step in weights:
        built.module.zero_grad(set_to_none=True)
        built(models.packed(of_step, used)).backward()
        built.finish()
        found.append(gradients(built.module))
    return found
