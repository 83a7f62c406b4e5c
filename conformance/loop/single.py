"""What a single process computes: the yardstick for every rank. Plain torch, no process group, no implementation.

With N ranks the gradient of a step is the mean of the ranks' gradients; for equal local batches that is the gradient of
the global batch, which is computed here as such, from all rows at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from conformance.loop.programs import Batches, Rows, Values, gradients, parameters
from fixtures import models
from fixtures.world.per_rank import PerRank

FLOAT32_UNIT = 2.0**-24  # the largest relative error of one rounding in float32
NUDGE = 2.0**-20  # how far the initial weights are moved to see how much a training run magnifies an error


def batches(
    seed: int, world_size: int, *, steps: int = 1, rows: int | Sequence[int] = 4, micro: int = 1, real: bool = False
) -> Batches:
    """Rows of every step, rank and microbatch; a list for ``rows`` gives each rank a number of its own."""
    sizes = [rows] * world_size if isinstance(rows, int) else list(rows)
    count = iter(range(10_000))

    def draw(size: int) -> Rows:
        at = 2 * (seed * 10_000 + next(count))
        return models.rows(size, at, real=real), models.rows(size, at + 1, real=real)

    return [[[draw(size) for _ in range(micro)] for size in sizes] for _ in range(steps)]


def coefficients(shapes: Sequence[Sequence[int]], world_size: int, steps: Iterable[int]) -> PerRank:
    """For each rank and each of the steps N times the integers of `models.coefficients`, so that a mean is their sum.

    What a rank of a step has is drawn from ``100 * step + rank``.
    """
    return PerRank(
        [
            [[world_size * weight for weight in models.coefficients(shapes, 100 * step + rank)] for step in steps]
            for rank in range(world_size)
        ]
    )


def own(data: Batches, world_size: int) -> PerRank:
    """Each rank's own rows: by step and microbatch."""
    return PerRank.of_steps(data, world_size)


def own_seeds(seed: int, world_size: int) -> PerRank:
    """A seed for each rank, `seed` for rank 0: for models that begin apart."""
    return PerRank(models.own_seeds(seed, world_size))


def of_rank(
    model: str,
    micro: Sequence[Rows],
    *,
    seed: int = 1,
    scale: float = 1.0,
    dtype: torch.dtype | None = None,
    active: bool | None = None,
) -> Values:
    """The gradients that one rank computes on its own from the weights that ``seed`` gives."""
    module = models.build(model, seed, dtype)
    if active is not None:
        module.active = active  # type: ignore[assignment]  # a plain flag of models.Optional
    for x, target in micro:
        models.weighted(module(x.to(dtype) if dtype else x), target, scale).backward()  # type: ignore[no-untyped-call]
    return gradients(module)


def mean(values: Sequence[Values]) -> Values:
    """The mean over ranks; a gradient that one rank lacks counts as zero, one that all lack stays None."""
    return {name: None if total is None else total / len(values) for name, total in total_of(values).items()}


def total_of(values: Sequence[Values]) -> Values:
    """The sum over ranks, in double precision and back: exact for integers."""
    found: Values = {}
    for name in values[0]:
        present = [value for value in (by_rank[name] for by_rank in values) if value is not None]
        found[name] = torch.stack([v.double() for v in present]).sum(0).to(present[0].dtype) if present else None
    return found


def of_global_batch(model: str, by_rank: Sequence[Sequence[Rows]], *, seed: int = 1, scale: float = 1.0) -> Values:
    """The gradients of all rows of all ranks at once, microbatch after microbatch."""
    return of_rank(model, [joined(pieces) for pieces in zip(*by_rank, strict=True)], seed=seed, scale=scale)


def joined(pieces: Sequence[Rows]) -> Rows:
    """Rows of several ranks as one batch."""
    return torch.cat([x for x, _ in pieces]), torch.cat([target for _, target in pieces])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A training run of one process on the global batch."""

    parameters: Mapping[str, Tensor]
    losses: list[float]
    moved: float  # the largest change of any parameter


class Sgd:
    """w -= rate * v with v = momentum * v + g, written out: torch.optim would take seconds to import here."""

    def __init__(self, momentum: float = 0.0) -> None:
        self._momentum = momentum
        self._velocity: dict[nn.Parameter, Tensor] = {}

    def step(self, parameter: nn.Parameter, gradient: Tensor, rate: float, count: int) -> None:
        """One update in place."""
        velocity = self._momentum * self._velocity.get(parameter, torch.zeros_like(gradient)) + gradient
        self._velocity[parameter] = velocity
        parameter.sub_(rate * velocity)


class Adam:
    """Kingma and Ba 2015, with its usual constants: divides by the size of the gradient, so a factor cancels."""

    def __init__(self, momentum: float = 0.9) -> None:
        self._betas = (momentum, 0.999)
        self._moments: dict[nn.Parameter, tuple[Tensor, Tensor]] = {}

    def step(self, parameter: nn.Parameter, gradient: Tensor, rate: float, count: int) -> None:
        """One update in place; ``count`` is 1 for the first."""
        (beta1, beta2), zero = self._betas, torch.zeros_like(gradient)
        first, second = self._moments.get(parameter, (zero, zero))
        first, second = beta1 * first + (1 - beta1) * gradient, beta2 * second + (1 - beta2) * gradient**2
        self._moments[parameter] = first, second
        size = (second / (1 - beta2**count)).sqrt() + 1e-8
        parameter.sub_(rate * (first / (1 - beta1**count)) / size)


def train(
    model: str,
    data: Batches,
    *,
    rates: Sequence[float],
    seed: int = 1,
    optimizer: Sgd | Adam | None = None,
    loss: str = "squared",
    scale: float = 1.0,
    nudge: float = 0.0,
) -> Run:
    """Train in double precision on all rows of each step; ``nudge`` moves the initial weights a little."""
    module = models.build(model, seed, real=True).double()
    start = parameters(module)
    optimizer = Sgd() if optimizer is None else optimizer
    losses = []
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(nudge)
    for count, (rate, by_rank) in enumerate(zip(rates, data, strict=True), start=1):
        module.zero_grad()
        total = torch.zeros((), dtype=torch.float64)
        for pieces in zip(*by_rank, strict=True):
            x, target = joined(pieces)
            total = total + models.LOSSES[loss](module(x.double()), target, scale)
        total.backward()  # type: ignore[no-untyped-call]
        losses.append(float(total.detach()))
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.grad is not None:
                    optimizer.step(parameter, parameter.grad, rate, count)
    found = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
    return Run(parameters=found, losses=losses, moved=apart(found, start))


def alone(model: str, data: Batches, rank: int, *, rates: Sequence[float], seed: int = 1, momentum: float = 0.0) -> Run:
    """What becomes of a rank that trains on its own rows and never talks to the others."""
    mine: Batches = [[by_rank[rank]] for by_rank in data]
    return train(model, mine, rates=rates, seed=seed, optimizer=Sgd(momentum))


def apart(first: Mapping[str, Tensor | None], second: Mapping[str, Tensor | None]) -> float:
    """The largest difference of any element."""
    pairs = [(value, second[name]) for name, value in first.items()]
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs if a is not None and b is not None)


def rounding_bound(model: str, data: Batches, *, rates: Sequence[float], seed: int = 1, momentum: float = 0.0) -> float:
    """How far a correct float32 run may end from the exact one.

    Per step an element takes part in at most ``terms`` roundings (rows of the global batch, the widths it is summed
    over, the ranks, the update), each of at most `FLOAT32_UNIT` of the largest value. What one step gets wrong the
    later ones magnify, by as much as they magnify a `NUDGE` of the initial weights.
    """
    exact = train(model, data, rates=rates, seed=seed, optimizer=Sgd(momentum))
    nudged = train(model, data, rates=rates, seed=seed, optimizer=Sgd(momentum), nudge=NUDGE)
    growth = max(1.0, apart(exact.parameters, nudged.parameters) / NUDGE)
    num_rows = sum(len(x) for micro in data[0] for x, _ in micro)
    terms = num_rows + len(data[0]) + 4 * models.FEATURES + 8
    largest = max(1.0, *(float(value.abs().max()) for value in exact.parameters.values()))
    return len(data) * terms * FLOAT32_UNIT * largest * growth
