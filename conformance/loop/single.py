"""What a single process computes: the yardstick for every rank. Plain torch, no process group, no implementation.

With N ranks the gradient of a step is the mean of the ranks' gradients; for equal local batches that is the gradient of
the global batch, which is computed here as such, from all rows at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from conformance.loop.programs import Batches, Rows, Values, gradients, parameters
from fixtures import models

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

    parameters: dict[str, Tensor]
    losses: list[float]
    moved: float  # the largest change of any parameter


def train(
    model: str,
    data: Batches,
    *,
    rates: Sequence[float],
    seed: int = 1,
    momentum: float = 0.0,
    loss: str = "squared",
    scale: float = 1.0,
    nudge: float = 0.0,
    optimizer: str = "SGD",
    dtype: torch.dtype = torch.float64,
) -> Run:
    """Train on all rows of each step, microbatch after microbatch; ``nudge`` moves the initial weights a little."""
    module = models.build(model, seed, real=True).to(dtype)
    start = parameters(module)
    _nudge(module, nudge)
    options = {"momentum": momentum} if optimizer == "SGD" else {}
    stepper = getattr(torch.optim, optimizer)(module.parameters(), lr=1.0, **options)
    losses = []
    for rate, by_rank in zip(rates, data, strict=True):
        stepper.zero_grad()
        total = torch.zeros((), dtype=dtype)
        for pieces in zip(*by_rank, strict=True):
            x, target = joined(pieces)
            total = total + models.LOSSES[loss](module(x.to(dtype)), target, scale)
        total.backward()  # type: ignore[no-untyped-call]
        stepper.param_groups[0]["lr"] = rate
        stepper.step()
        losses.append(float(total.detach()))
    found = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
    return Run(parameters=found, losses=losses, moved=apart(found, start))


def alone(model: str, data: Batches, rank: int, *, rates: Sequence[float], seed: int = 1, momentum: float = 0.0) -> Run:
    """What becomes of a rank that trains on its own rows and never talks to the others."""
    mine: Batches = [[by_rank[rank]] for by_rank in data]
    return train(model, mine, rates=rates, seed=seed, momentum=momentum)


def apart(first: Values, second: Values) -> float:
    """The largest difference of any element."""
    pairs = [(value, second[name]) for name, value in first.items()]
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs if a is not None and b is not None)


def rounding_bound(model: str, data: Batches, *, rates: Sequence[float], seed: int = 1, momentum: float = 0.0) -> float:
    """How far a correct float32 run may end from the exact one.

    Per step an element takes part in at most ``terms`` roundings (rows of the global batch, the widths it is summed
    over, the ranks, the update), each of at most `FLOAT32_UNIT` of the largest value; what one step gets wrong the later
    ones magnify, by as much as they magnify a `NUDGE` of the initial weights.
    """
    exact = train(model, data, rates=rates, seed=seed, momentum=momentum)
    nudged = train(model, data, rates=rates, seed=seed, momentum=momentum, nudge=NUDGE)
    growth = max(1.0, apart(exact.parameters, nudged.parameters) / NUDGE)
    num_rows = sum(len(x) for micro in data[0] for x, _ in micro)
    terms = num_rows + len(data[0]) + 4 * models.FEATURES + 8
    largest = max(1.0, *(float(value.abs().max()) for value in exact.parameters.values()))
    return len(data) * terms * FLOAT32_UNIT * largest * growth


def _nudge(module: nn.Module, by: float) -> None:
    if by:
        with torch.no_grad():
            for parameter in module.parameters():
                parameter += by
