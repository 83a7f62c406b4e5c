"""Rank programs for the whole worker: `train`, and `batch_slice`, with a model that remembers what it met."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from conformance.loop.programs import Values, parameters
from fixtures import models
from fixtures.world.context import RankContext

RATE = 0.0625
SEED = 1234  # handed to the worker


class Factory:
    """`make_model` of the contract: builds with torch's own random initialisation, and remembers each model."""

    def __init__(self, make: type[nn.Module], file: Path) -> None:
        self._make = make
        self._file = file
        self.built: list[nn.Module] = []
        self.first_values: list[Values] = []
        self.group: tuple[Any, ...] = ()  # as it is when the model is built

    def __call__(self) -> nn.Module:
        """A fresh model from the random numbers as they are now."""
        model = self._make()
        self.built.append(model)
        self.first_values.append(parameters(model))
        self.look_at_group()
        return model

    def look_at_group(self) -> None:
        """Note rank, size and backend of the group, and whether the file was used, once there is a group."""
        if dist.is_initialized() and not self.group:
            used = self._file.exists() and self._file.stat().st_size > 0
            self.group = (dist.get_rank(), dist.get_world_size(), dist.get_backend(), used)


def slices(ctx: RankContext, cases: list[tuple[int, int]]) -> list[list[int]]:
    """The rows that this rank takes in each ``(step, batch_size)``, as a list of numbers."""
    assert ctx.impl is not None
    return [
        numbers(
            ctx.impl.call("batch_slice", step=step, rank=ctx.rank, world_size=ctx.world_size, batch_size=batch_size)
        )
        for step, batch_size in cases
    ]


def numbers(rows: Any) -> list[int]:
    """A slice, range, pair ``(begin, end)``, index tensor or sequence of row numbers as plain numbers."""
    if isinstance(rows, slice):
        return list(range(rows.start or 0, rows.stop, rows.step or 1))
    if isinstance(rows, int):
        raise TypeError(f"batch_slice returned {rows}, where a slice or (begin, end) is wanted")
    if isinstance(rows, Tensor):
        rows = rows.tolist()
    if isinstance(rows, tuple) and len(rows) == 2:
        return list(range(*map(int, rows)))
    assert isinstance(rows, Iterable)
    return [int(row) for row in rows]


def work(
    ctx: RankContext, model: str, inputs: Tensor, targets: Tensor, *, steps: int, batch_size: int
) -> dict[str, Any]:
    """Run the implementation's worker, in a world without a process group; one that it leaves open is ended."""
    try:
        return _work(ctx, model, inputs, targets, steps, batch_size)
    finally:
        if dist.is_initialized():
            gc.collect()  # a wrapper that still lives when its group ends can deadlock
            dist.destroy_process_group()


def _work(ctx: RankContext, model: str, inputs: Tensor, targets: Tensor, steps: int, batch_size: int) -> dict[str, Any]:
    assert ctx.impl is not None
    file = ctx.rendezvous_file()
    make = Factory(models.MODELS[model], file)  # type: ignore[arg-type]  # every model is a class
    trained = ctx.impl.call(
        "train",
        rank=ctx.rank,
        world_size=ctx.world_size,
        init_file=str(file),
        make_model=make,
        inputs=inputs,
        targets=targets,
        steps=steps,
        batch_size=batch_size,
        learning_rate=RATE,
        seed=SEED,
    )
    model_used = make.built[-1]
    if isinstance(trained, nn.Module):
        inner = getattr(trained, "module", trained)
        model_used = inner if isinstance(inner, nn.Module) else trained
    make.look_at_group()
    return {
        "start": make.first_values[-1],
        "parameters": parameters(model_used),
        "seen": model_used.rows_seen() if isinstance(model_used, models.Recording) else [],
        "group": make.group,
    }


def seeded(ctx: RankContext, model: str, seed: int) -> Values:
    """The parameters that torch gives the model after ``manual_seed(seed)``."""
    torch.manual_seed(seed)
    return parameters(models.MODELS[model]())
