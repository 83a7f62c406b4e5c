"""Rank programs that watch a data-parallel step from outside: its traffic, its order, its memory. Imports no pytest."""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import torch
from torch import nn

from conformance.asks import asks_for
from conformance.loop.programs import replica
from fixtures import models
from fixtures.witness import compute
from fixtures.world.context import RankContext
from impls.contract.methods import SYNC_METHODS

INSIDE = "no-sync"  # begin and end marks around what runs in no_sync()
AT_REST = "at rest"


def window(step: int) -> str:
    """The name of the wire window around a step's backward and the end of its reduction."""
    return f"gradients of step {step}"


def deep(ctx: RankContext, num_layers: int, width: int) -> nn.Module:
    """A chain of square layers with weights of this rank's own; scaled so that values neither grow nor vanish."""
    torch.manual_seed(ctx.rank)
    return models.Deep(num_layers, width)


def step(
    ctx: RankContext,
    *,
    num_layers: int,
    width: int,
    steps: int,
    model: str | None = None,
    bucket_cap_mb: float | None = None,
    micro: int = 1,
    watch: bool = False,
    nested: bool = False,
) -> dict[str, Any]:
    """Some training steps; each with marks at its edges, and the reduction inside a wire window.

    With several microbatches all but the last run in ``no_sync()``, between marks of their own. ``watch`` marks the
    compute events of every layer, so that the order of gradients and operations can be told. ``nested``: a
    ``no_sync()`` inside of that one begins and ends before these backward passes.
    """
    module = models.build(model, 1 + ctx.rank, real=True) if model else deep(ctx, num_layers, width)
    if watch:
        compute.watch(module, ctx.mark, depth=2)
    built = replica(ctx, module, bucket_cap_mb=bucket_cap_mb)
    features = models.FEATURES if model else width
    for index in range(steps):
        module.zero_grad(set_to_none=True)
        ctx.mark("step-begin", str(index))
        rows = [models.rows(2, 100 * index + 10 * ctx.rank + m, real=True, width=features) for m in range(micro)]
        _accumulate(ctx, built, rows[:-1], nested)
        loss = built(rows[-1]).square().mean()
        with ctx.window(window(index)):
            loss.backward()
            ctx.mark("backward-end")
            built.finish()
        ctx.mark("step-end", str(index))
    return {
        "gradient_bytes": sum(p.nbytes for p in built.module.parameters() if p.requires_grad),
        "num_parameters": len(list(built.module.parameters())),
        "buffer_bytes": sum(buffer.nbytes for buffer in built.module.buffers()),
        "dtypes": sorted({str(p.dtype).removeprefix("torch.") for p in built.module.parameters()}),
        "has_sync_call": any(callable(getattr(getattr(built, "wrapper", None), name, None)) for name in SYNC_METHODS),
    }


def _accumulate(ctx: RankContext, built: Any, rows: list[torch.Tensor], nested: bool) -> None:
    if rows:
        with built.no_sync():
            ctx.mark(f"{INSIDE}-begin")
            with built.no_sync() if nested else contextlib.nullcontext():
                pass
            for x in rows:
                built(x).square().mean().backward()
            ctx.mark(f"{INSIDE}-end")


def overlapping(ctx: RankContext, *, steps: int) -> dict[str, Any]:
    """Steps of a model that needs several buckets: small ones where the wrapper can be told, else a large model."""
    if asks_for(ctx.impl, "DataParallel", "bucket_cap_mb"):
        return step(ctx, num_layers=6, width=models.WIDE, steps=steps, bucket_cap_mb=1.0, watch=True)
    return step(ctx, num_layers=60, width=models.WIDE, steps=steps, watch=True)


def sixty_mebibytes(ctx: RankContext, *, bucket_cap_mb: float | None = None) -> dict[str, Any]:
    """Two steps of 60 layers of 1 MiB; torch lays its buckets out anew between them."""
    report = step(ctx, num_layers=60, width=models.WIDE, steps=2, bucket_cap_mb=bucket_cap_mb)
    return report | {"takes_cap": asks_for(ctx.impl, "DataParallel", "bucket_cap_mb")}


def memory(ctx: RankContext, *, num_layers: int, width: int) -> dict[str, int]:
    """Bytes that a replica adds at rest, after three steps with momentum; ``other`` is what else it keeps."""
    gc.collect()
    with contextlib.ExitStack() as before:
        before.callback(gc.collect)
        ctx.weigh("before", others=True)
        module = deep(ctx, num_layers, width)
        built = replica(ctx, module)
        optimizer = torch.optim.SGD(built.module.parameters(), lr=0.01, momentum=0.9)
        for index in range(3):
            optimizer.zero_grad(set_to_none=True)
            built(models.rows(2, 7 * index + ctx.rank, real=True, width=width)).square().mean().backward()
            built.finish(optimizer)
            optimizer.step()
        gc.collect()
        ctx.weigh(AT_REST, module=built.module, optimizer=optimizer, others=True)
        return {"bytes": sum(p.nbytes for p in module.parameters())}


def partition(ctx: RankContext, seed: int, rows: torch.Tensor) -> dict[str, Any]:
    """One step on this rank's rows: those that reached the module, and the parameters that it had there and after."""
    module = models.build("recording", seed, real=True)
    assert isinstance(module, models.Recording)
    seen_shapes: list[dict[str, tuple[int, ...]]] = []
    module.register_forward_pre_hook(lambda hooked, _: seen_shapes.append(_shapes(hooked)))
    built = replica(ctx, module)
    out = built(rows)
    out.square().mean().backward()
    built.finish()
    found = built.module.rows_seen() if isinstance(built.module, models.Recording) else module.rows_seen()
    return {"rows": found, "outputs": len(out), "in_forward": seen_shapes[-1:], "after": _shapes(built.module)}


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
