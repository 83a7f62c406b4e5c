"""Rank programs that run tensor-parallel layers beside nothing else: values, memory, traffic. No pytest."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from conformance.strategies.tensor_case import LEARNING_RATE, WAYS, Case
from conformance.strategies.tensor_shards import locate
from fixtures import blocks
from fixtures.world.context import RankContext
from impls.parallel import SEQUENCE_DIM, Options, Parallel, local, pair, parallel
from impls.parallel import gradient as gradient_of
from impls.parallel_forms import starts

AT_REST = "at rest"


def values(ctx: RankContext, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Run a case: what this rank has of outputs, gradients and parameters."""
    case = Case.of(fields)
    group, half = _group(ctx, case)
    whole = case.build()
    start = {name: p.detach().clone() for name, p in whole.named_parameters()}
    if case.frozen and not case.frozen_after:
        whole.get_parameter(case.frozen).requires_grad_(False)
    layer = built(ctx, case, whole, group)
    frozen_here = case.frozen_after or layer.form != "module"
    for key, parameter in layer.shards().items():
        found = locate(key, _there(local(parameter)), start) if case.frozen and frozen_here else None
        if found is not None and case.frozen in found.names:
            parameter.requires_grad_(False)
    at_first = {key: _there(local(p)) for key, p in layer.shards().items()}
    outputs, gradients = [], []
    for number in range(case.steps + 1):
        if number:
            _descend(layer)
        for index in range(case.passes):
            out, gradient = _pass(layer, case, number * case.passes + index, group, half)
            outputs.append(out)
            gradients.append(gradient)
        layer.finish()
    return {
        "outputs": outputs,
        "input_gradients": gradients,
        "start": at_first,
        "parameters": {key: local(p) for key, p in layer.shards().items()},
        "gradients": {key: gradient_of(p) for key, p in layer.shards().items()},
        "learns": [key for key, p in layer.shards().items() if p.requires_grad],
        "form": layer.form,
        "knows_activation": layer.activation_is_known,
        "takes_whole": layer.takes_whole_input,
    }


def built(ctx: RankContext, case: Case, whole: nn.Module, group: dist.ProcessGroup | None = None) -> Parallel:
    """The implementation's layer for a case."""
    assert ctx.impl is not None
    plan = blocks.PLANS[case.kind]
    options = Options(
        group=group,
        sequence_parallel=case.sequence_parallel,
        gather_output=case.gather_output,
        input_is_parallel=case.input_is_parallel,
        plan=plan,
    )
    if case.way in ("pair", "heads"):
        return pair(ctx.impl, whole, plan, options)
    (name,) = WAYS[case.way][1]
    return parallel(ctx.impl, name, whole, options)


def _pass(
    layer: Parallel, case: Case, number: int, group: dist.ProcessGroup | None, half: int
) -> tuple[Tensor, Tensor | None]:
    """Forward and backward; the output, and the gradient of the input, as this rank has them."""
    x = _input(layer, case, case.inputs(number, half), group)
    y = x
    for _ in range(case.uses):
        y = layer(y)
    target = _like(y, case.targets(number, half), group)
    (y * target).sum().backward()  # type: ignore[no-untyped-call]
    return y.detach().clone(), x.grad


def _input(layer: Parallel, case: Case, whole: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """What this rank is given: a part of the sequence, a part of the features, or all of it."""
    x = whole
    if case.sequence_parallel and case.kind != "row":
        x = _part(x, SEQUENCE_DIM, x.shape[SEQUENCE_DIM] // dist.get_world_size(group), group)
    if case.kind == "row" and not layer.takes_whole_input:
        matrix = next(_there(local(p)) for p in layer.shards().values() if p.dim() == 2)
        size = matrix.numel() // case.width
        if size == case.inner:  # it keeps the whole weight, and takes a part of the input all the same
            size = x.chunk(dist.get_world_size(group), -1)[dist.get_rank(group)].shape[-1]
        x = _part(x, -1, size, group)
    x = x.clone()
    return x.requires_grad_(case.needs_input_gradient) if x.is_floating_point() else x


def _like(out: Tensor, target: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """The part of the target that belongs to this rank's part of the output."""
    for dim in range(target.dim()):
        if out.shape[dim] != target.shape[dim]:
            target = _part(target, dim, out.shape[dim], group)
    return target


def _part(whole: Tensor, dim: int, size: int, group: dist.ProcessGroup | None) -> Tensor:
    start = starts(size, group)
    count = max(0, min(size, whole.shape[dim] - start))
    part = whole.narrow(dim, min(start, whole.shape[dim]), count)
    missing = size - count  # what an implementation pads
    if missing:
        shape = list(part.shape)
        shape[dim] = missing
        part = torch.cat([part, part.new_zeros(shape)], dim)
    return part


def _group(ctx: RankContext, case: Case) -> tuple[dist.ProcessGroup | None, int]:
    if not case.halves:
        return None, 0
    middle = ctx.world_size // 2
    groups = [dist.new_group(list(range(middle))), dist.new_group(list(range(middle, ctx.world_size)))]
    half = int(ctx.rank >= middle)
    found: dist.ProcessGroup = groups[half]
    return found, half


def _there(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor


def _descend(layer: Parallel) -> None:
    with torch.no_grad():
        for parameter in layer.shards().values():
            if parameter.grad is not None:
                parameter -= LEARNING_RATE * parameter.grad
                parameter.grad = None


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(ctx: RankContext, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Bytes that a layer adds at rest, after two steps with momentum; ``other`` is what else it keeps."""
    case = Case.of(fields)
    gc.collect()
    with contextlib.ExitStack() as before:
        before.callback(gc.collect)
        ctx.weigh("before", others=True)
        whole = case.build()
        layer = built(ctx, case, whole)
        del whole
        learning = [p for p in layer.shards().values() if p.requires_grad]
        optimizer = torch.optim.SGD(learning, lr=0.01, momentum=0.9)
        for number in range(2):
            optimizer.zero_grad(set_to_none=True)
            _pass(layer, case, number, None, 0)
            layer.finish()
            optimizer.step()
        gc.collect()
        held = list(layer.shards().values())
        gradients = [p.grad for p in held if p.grad is not None]
        ctx.weigh(AT_REST, parameters=held, gradients=gradients, optimizer=optimizer, others=True)
        return {"form": layer.form}


# -- traffic -----------------------------------------------------------------------------------------------------------


def traffic(ctx: RankContext, fields: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """One step through `depth` layers in a row, with marks at the edges of forward and backward."""
    case = Case.of(fields)
    layers = [built(ctx, case, blocks.build(case.size, 10 + index, exact=False)) for index in range(depth)]
    x = _input(layers[0], case, case.inputs(0), None)
    target = case.targets(0)
    with torch.no_grad():  # once before: what is set up at first use is no traffic of a step
        shape = _through(layers, x).shape
    target = _like(torch.empty(shape), target, None)
    ctx.mark("forward-begin")
    y = _through(layers, x)
    ctx.mark("forward-end")
    loss = (y * target).sum()
    ctx.mark("backward-begin")
    loss.backward()  # type: ignore[no-untyped-call]
    for layer in layers:
        layer.finish()
    ctx.mark("backward-end")
    kept = [p for layer in layers for key, p in layer.shards().items()]
    return {
        "form": layers[0].form,
        "takes_whole": layers[0].takes_whole_input,
        "out_width": y.shape[-1],
        "small_bytes": sum(_there(local(p)).nbytes for p in kept if p.dim() == 1),
    }


def _through(layers: list[Parallel], x: Tensor) -> Tensor:
    for layer in layers:
        x = layer(x)
    return x
