"""Rank programs for the single calls on a module: broadcast of its parameters, sum and mean of its gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from conformance.loop.programs import Rows, gradients, parameters
from fixtures import models
from fixtures.world.context import RankContext

STRIDED = 4  # elements of the view in the control


@contextlib.contextmanager
def _same_memory(module: nn.Module, report: dict[str, Any]) -> Iterator[None]:
    """Whether the parameters are the same objects in the same memory afterwards."""
    before = [(id(parameter), parameter.data_ptr()) for parameter in module.parameters()]
    yield
    report["in_place"] = before == [(id(parameter), parameter.data_ptr()) for parameter in module.parameters()]


def broadcast(ctx: RankContext, model: str, *, seed: int, src: int, strided: bool = False) -> dict[str, Any]:
    """`broadcast_parameters` on a model whose values differ between ranks, by their seeds."""
    assert ctx.impl is not None
    module = models.build(model, seed)
    if strided:
        _stride(module)
    report: dict[str, Any] = {"before": parameters(module)}
    with _same_memory(module, report):
        ctx.impl.call("broadcast_parameters", module=module, src=src, world_size=ctx.world_size, group=None)
    return {**report, "after": parameters(module)}


def reduce(
    ctx: RankContext,
    name: str,
    model: str,
    rows: Rows,
    *,
    seed: int,
    scale: float,
    strided: bool = False,
    dtype: torch.dtype | None = None,
) -> dict[str, Any]:
    """One backward pass without any wrapper, then `name` (`sum_gradients`, `average_gradients`) on the gradients."""
    assert ctx.impl is not None
    module = models.build(model, seed, dtype)
    x, target = rows
    models.weighted(module(x.to(dtype) if dtype else x), target, scale).backward()  # type: ignore[no-untyped-call]
    if strided:
        for parameter in module.parameters():
            if parameter.grad is not None:
                parameter.grad = _strided(parameter.grad)
    local = gradients(module)
    ctx.impl.call(name, module=module, world_size=ctx.world_size, group=None)
    return {"local": local, "after": gradients(module)}


def _stride(module: nn.Module) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.data = _strided(parameter.data)


def _strided(tensor: Tensor) -> Tensor:
    """The same values with a gap after each element: a view that does not fill its memory."""
    room = tensor.new_zeros(*tensor.shape, 2)
    room[..., 0] = tensor
    return room[..., 0]


def sum_strided_view(ctx: RankContext) -> list[float]:
    """Control, without an implementation: what gloo makes of a view with gaps, filled with rank + 1."""
    room = torch.zeros(16 * STRIDED)
    view = room[::2][:STRIDED]
    view.fill_(ctx.rank + 1.0)
    dist.all_reduce(view)
    return [float(value) for value in view]
