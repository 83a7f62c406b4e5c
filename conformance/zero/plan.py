"""What a training run consists of, told in the same words to the ranks and to the yardstick. Imports no pytest.

Data is that of `conformance.loop`: for each step and rank its microbatches. With N ranks the loss of a step is the mean
over ranks; rows are equal in number, so that it is the loss of the global batch.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from conformance.loop.programs import Batches, Rows
from fixtures import models
from fixtures.world.per_rank import PerRank

LR = {"lr": 0.1}
UNKNOWN = "its own optimizer"  # of an implementation that chooses it, where it is none of those that are written out


def parts(plans: Sequence[Plan], world_size: int) -> PerRank:
    """For each rank the fields of its own part of every plan."""
    by_plan = [plan.parts(world_size).values for plan in plans]
    return PerRank([list(of_rank) for of_rank in zip(*by_plan, strict=True)])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # tensors in it: one is equal to itself only
class Plan:
    """One training run. Everything in it is plain data, and each rank is given its part of it by `parts`.

    In a rank, which is told nothing of the others' rows, there is one rank in ``data`` and ``active``: itself.
    """

    data: Batches  # step, rank, microbatch
    model: str = "mlp"  # of fixtures.models, or of `shapes`
    shapes: list[list[int]] | None = None  # a layer for each, in the place of a model
    frozen: list[bool] = dataclasses.field(default_factory=list)  # which of these layers do not learn
    unused: list[int] = dataclasses.field(default_factory=list)  # and which are in no forward pass
    wide: list[int] = dataclasses.field(default_factory=list)  # which are float32, whatever the others are
    tied: list[list[int]] = dataclasses.field(default_factory=list)  # pairs that share one weight
    seed: int = 5
    real: bool = True  # real numbers for weights, else small integers
    is_exact: bool = False  # float32 has nothing to round in it, with SGD: results are compared bit for bit
    dtype: torch.dtype | None = None
    loss: str = "squared"
    scale: float = 1.0
    optimizer: str = "SGD"  # of torch.optim, or `UNKNOWN`
    options: Mapping[str, Any] = dataclasses.field(default_factory=lambda: LR)
    groups: list[list[Any]] | None = None  # [what a name ends with, options, its first step], the first that fits
    rates: list[float] | None = None  # the learning rate of each step, set before it
    changes: list[dict[str, Any]] | None = None  # options of each step, set before it
    max_norm: float | None = None  # to clip gradients by
    active: list[list[bool]] | None = None  # step, rank: whether models.Optional uses its extra layer
    evaluates: bool = False  # a forward pass without gradients before each step
    extras: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of mixed precision, or of fully_shard
    on_shards: bool = False  # of stage 3: its optimizer is the implementation's mixed precision

    def fields(self) -> dict[str, Any]:
        """What `Plan` is made from again."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def parts(self, world_size: int) -> PerRank:
        """The fields of each rank's own plan."""
        return PerRank([self._of_rank(rank).fields() for rank in range(world_size)])

    def _of_rank(self, rank: int) -> Self:
        return dataclasses.replace(
            self,
            data=[[by_rank[rank]] for by_rank in self.data],
            active=None if self.active is None else [[by_rank[rank]] for by_rank in self.active],
        )

    def rows_of(self, step: int) -> list[Rows]:
        """In a rank: its own microbatches of a step."""
        (own,) = self.data[step]
        return own

    def activate(self, module: nn.Module, step: int) -> None:
        """In a rank: switch the extra layer of models.Optional on or off, as it is for this rank in the step."""
        if self.active is not None:
            (own,) = self.active[step]
            module.active = own  # type: ignore[assignment]  # a plain flag

    def part(self, steps: slice) -> Self:
        """Some of the steps, from the same initial weights."""
        return dataclasses.replace(
            self,
            data=self.data[steps],
            rates=None if self.rates is None else self.rates[steps],
            changes=None if self.changes is None else self.changes[steps],
            active=None if self.active is None else self.active[steps],
        )

    @property
    def is_rounded(self) -> bool:
        """Whether weights are numbers of the dtype after every step: there is no master copy of them."""
        return not self.extras.get("master", True)

    @property
    def called(self) -> str:
        """The run in a few words, for messages."""
        told = ", ".join(f"{name} {value}" for name, value in self.options.items())
        dtype = f" in {self.dtype}".replace("torch.", "") if self.dtype else ""
        dtype += " without masters" if self.is_rounded else ""
        return f"{self.model if self.shapes is None else f'layers {self.shapes}'}{dtype}, {self.optimizer}({told})"

    def build(self, seed: int | None = None) -> nn.Module:
        """The module with its initial weights."""
        seed = self.seed if seed is None else seed
        if self.shapes is None:
            return models.build(self.model, seed, self.dtype, real=self.real)
        return models.fill(Layers(self), seed, real=self.real)

    def loss_of(self, module: Any, x: Tensor, target: Tensor) -> Tensor:
        """The loss of one microbatch of one rank."""
        cast = self.shapes is None and self.dtype is not None
        return models.LOSSES[self.loss](module(x.to(self.dtype) if cast else x), target, self.scale)

    def options_of(self, name: str, step: int) -> Mapping[str, Any] | None:
        """The optimizer's options for a parameter in a step; None when it is in no group as yet."""
        if self.groups is None:
            return self.options
        index = self.group_of(name)
        if index is None or self.groups[index][2] > step:
            return None
        return {**self.options, **self.groups[index][1]}

    def group_of(self, name: str) -> int | None:
        """Which of the groups a parameter belongs to; None for none."""
        return next((index for index, (ending, *_) in enumerate(self.groups or []) if name.endswith(ending)), None)


class Layer(nn.Module):
    """A parameter of any shape, and a dot product with it."""

    def __init__(self, shape: Sequence[int], frozen: bool, dtype: torch.dtype | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(tuple(shape), dtype=dtype), requires_grad=not frozen)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, numel] to [rows], in the dtype of `x`."""
        return (self.weight.reshape(-1).to(x.dtype) * x).sum(1)


class Layers(nn.Module):
    """Layers side by side, each fed its part of a row: gradients are those parts, whatever the weights are."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        shapes = plan.shapes or []
        still = plan.frozen or [False] * len(shapes)
        self._unused = set(plan.unused)
        self._numels = [math.prod(shape) for shape in shapes]  # the parameters may be in pieces when it is called
        for index, (shape, is_frozen) in enumerate(zip(shapes, still, strict=True)):
            dtype = torch.float32 if index in plan.wide else plan.dtype
            self.add_module(f"layer{index}", Layer(shape, is_frozen, dtype))
        for first, second in plan.tied:
            setattr(getattr(self, f"layer{second}"), "weight", getattr(self, f"layer{first}").weight)  # noqa: B010

    def forward(self, x: Tensor) -> Tensor:
        """[rows, numel of all] to [rows, 1]."""
        parts = enumerate(torch.split(x, self._numels, 1))
        products = [getattr(self, f"layer{index}")(part) for index, part in parts if index not in self._unused]
        return torch.stack(products).sum(0).unsqueeze(1)


def rows_for_layers(
    shapes: Sequence[Sequence[int]],
    world_size: int,
    *,
    steps: int,
    seed: int = 0,
    micro: int = 1,
    real: bool = False,
    unit: float = 1.0,
) -> Batches:
    """One row for each microbatch: real numbers, or N times small integers, so that a mean over ranks is exact.

    The integers are in multiples of `unit`.
    """
    width = sum(map(math.prod, shapes))
    generator = torch.Generator().manual_seed(seed)

    def draw() -> Rows:
        if real:
            return torch.randn(1, width, generator=generator), torch.ones(1, 1)
        return unit * world_size * torch.randint(-3, 4, (1, width), generator=generator), torch.ones(1, 1)

    return [[[draw() for _ in range(micro)] for _ in range(world_size)] for _ in range(steps)]
