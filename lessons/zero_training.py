"""What lesson 78 observes: the same training with the optimizer sharded and not, and the bytes that each rank holds.

Runs on ranks, and prints nothing. The losses are those of an FP32 model, where only the order of additions may differ;
the bytes those of a bfloat16 one, whose parameters, gradients and optimizer state are counted as in mixed precision.
"""

from __future__ import annotations

import dataclasses
import gc
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from fixtures.witness import memory
from fixtures.world.context import RankContext
from fixtures.world.outcome import Outcomes
from impls.loading import Implementation, load
from impls.stages import STAGES, stage

LAYERS, WIDTH = 8, 24  # equal layers: sharded evenly on 1, 2, 4 and 8 ranks, by elements or by whole parameters
BATCH_SIZE = 8  # rows per rank and step
LEARNING_RATE = 0.01
STEP_COUNTER_BYTES = 4  # that Adam keeps for each tensor it updates

Run = Callable[..., Outcomes]  # program, world_size, *arguments, like Subject.run


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Bytes on one rank after a step: what is in each category, and what is in none."""

    world_size: int
    rank: int
    num_parameters: int
    num_tensors: int
    parameters: int
    gradients: int
    optimizer: int
    other: int

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.parameters + self.gradients + self.optimizer + self.other


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The loss of every step on the global batch: in one process, with data parallelism, and with ZeRO-1."""

    world_size: int
    alone: tuple[float, ...]
    data_parallel: tuple[float, ...]
    sharded: tuple[float, ...]

    @property
    def difference(self) -> float:
        """The largest difference between ZeRO-1 and one process at any step; NaN when any is."""
        differences = [abs(a - b) for a, b in zip(self.sharded, self.alone, strict=True)]
        return math.nan if any(map(math.isnan, differences)) else max(differences)

    @property
    def bound(self) -> float:
        """How far rounding in FP32 may take them apart.

        A step rounds each sum over the rows of the global batch and the widths of the layers, 2**-24 of its size a
        time at most, and what it gets wrong stays in the parameters for all later steps.
        """
        terms = self.world_size * BATCH_SIZE + LAYERS * WIDTH
        return 2.0**-24 * terms * len(self.alone) * max(1.0, *self.alone)


def network(dtype: torch.dtype = torch.float32) -> nn.Module:
    """Square layers with a non-linearity between them, the same on every rank."""
    generator = torch.Generator().manual_seed(78)
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        layer = nn.Linear(WIDTH, WIDTH, bias=False)
        with torch.no_grad():
            layer.weight.copy_(torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH**0.5)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1]).to(dtype)


def rows(step: int, ranks: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Inputs and targets of these ranks in a step: a pattern that can be learnt. [rows, WIDTH] twice"""
    inputs = [
        torch.randn(BATCH_SIZE, WIDTH, generator=torch.Generator().manual_seed(1000 * step + rank)) for rank in ranks
    ]
    x = torch.cat(inputs)
    return x, torch.sin(x + x.roll(1, dims=-1))


def alone(world_size: int, steps: int) -> tuple[float, ...]:
    """The losses of one process on the rows of all ranks, with torch's own Adam."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for step in range(steps):
        x, target = rows(step, range(world_size))
        loss = functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    return tuple(losses)


def train(ctx: RankContext, name: str, steps: int) -> dict[str, list[float]]:
    """Train under stage `name` ("ddp" or "1"); this rank's losses, and on rank 0 those of one process too."""
    trainer = stage(_provider(ctx, name), name, network(), optimizer_cls=torch.optim.Adam, lr=LEARNING_RATE)
    losses = []
    for step in range(steps):
        x, target = rows(step, [ctx.rank])
        trainer.zero_grad()
        loss = functional.mse_loss(trainer(x), target)
        trainer.backward(loss)
        trainer.finish()
        trainer.average()
        trainer.step()
        losses.append(float(loss.detach()))
    return {"losses": losses, "alone": list(alone(ctx.world_size, steps)) if ctx.rank == 0 else []}


def weigh(ctx: RankContext) -> dict[str, int]:
    """Two steps of ZeRO-1 on the bfloat16 network, then the bytes of what lives, by category."""
    gc.collect()
    before = memory.weigh("before", others=True).categories["other"]
    assert ctx.impl is not None
    model = network(torch.bfloat16)
    trainer = stage(ctx.impl, "1", model, optimizer_cls=torch.optim.Adam, lr=LEARNING_RATE)
    for step in range(2):
        x, target = rows(step, [ctx.rank])
        trainer.zero_grad()
        trainer.backward(functional.mse_loss(trainer(x.bfloat16()).float(), target))
        trainer.finish()
        trainer.average()
        trainer.step()
    del x, target
    kept = memory.settled(lambda: dict(memory.weigh("after a step", others=True, **trainer.held()).categories))
    parameters = list(model.parameters())
    return {
        **{kind: kept.get(kind, 0) for kind in ("parameters", "gradients", "optimizer")},
        "other": max(0, kept["other"] - before),
        "num_parameters": sum(p.numel() for p in parameters),
        "num_tensors": len(parameters),
    }


def curves(run: Run, world_size: int, steps: int) -> Curves:
    """Train with and without sharding on `world_size` ranks. The loss of a step is the mean over ranks."""
    by_stage = {name: run(train, world_size, name, steps).values for name in ("ddp", "1")}
    means = {
        name: tuple(sum(column) / world_size for column in zip(*(r["losses"] for r in reports), strict=True))
        for name, reports in by_stage.items()
    }
    return Curves(
        world_size=world_size,
        alone=tuple(by_stage["1"][0]["alone"]),
        data_parallel=means["ddp"],
        sharded=means["1"],
    )


def held(run: Run, world_size: int) -> list[Held]:
    """The bytes on each of `world_size` ranks."""
    reports = run(weigh, world_size).values
    return [Held(world_size=world_size, rank=rank, **report) for rank, report in enumerate(reports)]


def _provider(ctx: RankContext, name: str) -> Implementation:
    """Who provides the stage: the implementation, or the reference where it has no data parallelism to compare with."""
    assert ctx.impl is not None
    return ctx.impl if ctx.impl.reason(STAGES[name]) is None else load("reference")
