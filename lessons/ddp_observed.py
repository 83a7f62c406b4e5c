"""What lessons 48 and 77 make of the ranks' notes: losses, gradients and spread, beside those of a single process.

All figures follow from the parameters before each step and the rows that were read, and are computed here, outside the
ranks. A step of SGD moves the parameters by the learning rate times the gradient: so the gradient is known as well.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fixtures.world.outcome import Outcomes
from impls.reference.loop import batch_slice
from impls.words import number_of
from lessons import ddp_worker
from lessons.ddp_notes import FEATURES, HIDDEN, Notes, Noting
from lessons.ddp_worker import LEARNING_RATE, Settings

data = functools.lru_cache(maxsize=2)(ddp_worker.data)  # read only, here
Run = Callable[..., Outcomes]  # program, world_size, *arguments, like Subject.run
MAX_SPREAD = 1e-3
HALF_ULP = 2.0**-24  # relative, of a float32


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One rank's training: `points` [steps + 1, parameters], the row numbers of each step, and its process group."""

    points: Tensor
    rows: Sequence[Sequence[int]]
    group_size: int
    backend: str

    @property
    def num_steps(self) -> int:
        """Optimizer steps that moved the parameters."""
        return len(self.rows)


@dataclasses.dataclass(frozen=True)
class Seen:
    """A training run on ranks, with what follows from it."""

    settings: Settings
    ranks: Sequence[Rank]

    @functools.cached_property
    def parameter_sums(self) -> list[float]:
        """The sum of all parameters at the end, rank by rank."""
        return [float(rank.points[-1].double().sum()) for rank in self.ranks]

    @property
    def spread(self) -> float:
        """How far the sums are apart."""
        return max(self.parameter_sums) - min(self.parameter_sums)

    @functools.cached_property
    def largest_parameter_difference(self) -> float:
        """Of any parameter to that of rank 0, at the end."""
        first = self.ranks[0].points[-1]
        return max(float((rank.points[-1] - first).abs().max()) for rank in self.ranks)

    @functools.cached_property
    def losses(self) -> list[float]:
        """Step by step, the mean over ranks of the loss on the rows that they read."""
        steps = range(min(rank.num_steps for rank in self.ranks))
        by_rank = [[_loss(rank.points[k], rank.rows[k], self.settings) for k in steps] for rank in self.ranks]
        return [sum(losses) / len(losses) for losses in zip(*by_rank, strict=True)]

    @functools.cached_property
    def gradient_norms(self) -> list[float]:
        """Step by step, of the gradient that rank 0's optimizer applied, after the all-reduce."""
        points = self.ranks[0].points.double()
        return [float(applied.norm()) for applied in (points[:-1] - points[1:]) / LEARNING_RATE]

    @functools.cached_property
    def gradient_difference(self) -> float:
        """The largest, in any step, of the gradient that a rank applied to that of one process on the global batch."""
        apart: list[float] = []
        for step in range(min(self.settings.num_steps, *(rank.num_steps for rank in self.ranks))):
            known: list[tuple[Tensor, Tensor]] = []  # ranks that are together share a point, and what is expected there
            for rank in self.ranks:
                point = rank.points[step]
                expected = next((found for other, found in known if torch.equal(other, point)), None)
                if expected is None:
                    expected = gradient(point, self.settings, step)
                    known.append((point, expected))
                applied = (point.double() - rank.points[step + 1].double()) / LEARNING_RATE
                apart.append(float((applied - expected).abs().max()))
        return math.nan if not apart or any(map(math.isnan, apart)) else max(apart)

    @functools.cached_property
    def gradient_bound(self) -> float:
        """How much of `gradient_difference` rounding in float32 explains.

        The step rounds parameters, and the division by the learning rate magnifies that; the gradient is a sum over the
        rows of the global batch and the widths of two layers.
        """
        largest = max(float(rank.points.abs().max()) for rank in self.ranks)
        terms = self.settings.world_size * self.settings.batch_size + FEATURES + 2 * HIDDEN
        return HALF_ULP * (2 * largest / LEARNING_RATE + terms * max(1.0, *self.gradient_norms))

    @functools.cached_property
    def spread_without_all_reduce(self) -> float:
        """Of the same steps from the same start, each rank with the gradient of its own rows."""
        sums = []
        for rank in range(self.settings.world_size):
            steps = [
                batch_slice(step, rank, self.settings.world_size, self.settings.batch_size)
                for step in range(self.settings.num_steps)
            ]
            point, _ = descend(self.ranks[0].points[0], self.settings, steps)
            sums.append(float(point.double().sum()))
        return max(sums) - min(sums)

    @functools.cached_property
    def single_losses(self) -> list[float]:
        """The losses of one process that trains on the global batches, from the same start."""
        size = self.settings.world_size * self.settings.batch_size
        steps = [slice(step * size, (step + 1) * size) for step in range(self.settings.num_steps)]
        return descend(self.ranks[0].points[0], self.settings, steps)[1]

    @property
    def loss_difference(self) -> float:
        """The largest, in any step, between the ranks and one process; NaN when any loss is, or none is there."""
        apart = [abs(a - b) for a, b in zip(self.losses, self.single_losses, strict=False)]
        return math.nan if not apart or any(map(math.isnan, apart)) else max(apart)

    @property
    def loss_bound(self) -> float:
        """How much of it rounding in float32 explains: each step rounds sums, and what it gets wrong stays."""
        terms = self.settings.world_size * self.settings.batch_size + FEATURES + 2 * HIDDEN
        return HALF_ULP * terms * self.settings.num_steps * max(1.0, *self.single_losses)


def seen_of(values: Sequence[dict[str, Any]], settings: Settings) -> Seen:
    """What `ddp_worker.work` returned on each rank, read."""
    return Seen(settings, [Rank(**value) for value in values])


def faults(seen: Seen) -> Iterator[str]:
    """What is wrong with the run as such, the size and backend of its group, its steps, its rows, its spread."""
    settings, steps = seen.settings, range(seen.settings.num_steps)
    for number, rank in enumerate(seen.ranks):
        if rank.group_size != settings.world_size:
            yield f"rank {number} trained in a group of {number_of(rank.group_size, 'rank')}, not {settings.world_size}"
        if rank.backend != settings.backend:
            yield f"rank {number}'s group runs on {rank.backend}, not {settings.backend}"
        if rank.num_steps != settings.num_steps:
            yield f"rank {number} made {rank.num_steps} optimizer steps, not {settings.num_steps}"
        sizes = [len(rows) for rows in rank.rows]
        odd = next((step for step, size in enumerate(sizes) if size != settings.batch_size), None)
        wrong = next((step for step in steps[: rank.num_steps] if _foreign(seen, number, step)), None)
        if odd is not None:
            yield f"rank {number} read {number_of(sizes[odd], 'row')} in step {odd + 1}, not {settings.batch_size}"
        elif wrong is not None:
            yield (
                f"rank {number} read rows in step {wrong + 1} that are not its own slice of the global batch. "
                "See: pytest --claim=loop.slices"
            )
    if not max(seen.spread, seen.largest_parameter_difference) < MAX_SPREAD:  # also NaN
        yield (
            f"the ranks' parameters have drifted apart: their sums by {seen.spread:.3g}, a parameter by "
            f"{seen.largest_parameter_difference:.3g}, where less than {MAX_SPREAD:g} is wanted. "
            "See: pytest --claim=loop.construct-broadcast --claim=loop.mean"
        )


def gradient_faults(seen: Seen) -> Iterator[str]:
    """Whether the gradient after the all-reduce is the mean over ranks, which one process would have."""
    if not seen.gradient_difference <= seen.gradient_bound:
        yield (
            f"the gradient after the all-reduce is not that of one process on the global batch: they differ by "
            f"{seen.gradient_difference:.3g}, where rounding explains {seen.gradient_bound:.1e}. "
            "See: pytest --claim=loop.mean"
        )


def loss_faults(seen: Seen) -> Iterator[str]:
    """Whether losses agree with those of one process."""
    if len(seen.losses) != len(seen.single_losses):
        yield f"there are {len(seen.losses)} losses of the ranks, and {len(seen.single_losses)} of one process"
    elif not seen.loss_difference <= seen.loss_bound:
        pairs = list(zip(seen.losses, seen.single_losses, strict=True))
        first = next(step for step, (a, b) in enumerate(pairs) if not abs(a - b) <= seen.loss_bound)
        yield (
            f"the ranks do not train like one process: from step {first + 1} on the losses differ, by "
            f"{seen.loss_difference:.3g} at most, where rounding explains {seen.loss_bound:.1e}. "
            "See: pytest --claim=loop.step"
        )


def shown(count: int, rows: int = 10) -> list[int]:
    """Which of `count` steps to print: all, or ten evenly spread, the first and the last among them."""
    return list(range(count)) if count <= rows else [round(i * (count - 1) / (rows - 1)) for i in range(rows)]


# -- a single process --------------------------------------------------------------------------------------------------


def descend(start: Tensor, settings: Settings, steps: Sequence[slice]) -> tuple[Tensor, list[float]]:
    """SGD on these rows of the data set, step by step: where it ends, and the loss of each step."""
    model, (inputs, targets) = _model(start), data(settings)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for rows in steps:
        loss = functional.mse_loss(model(inputs[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    return parameters_to_vector(model.parameters()).detach(), losses


def gradient(point: Tensor, settings: Settings, step: int) -> Tensor:
    """Of the loss on the global batch of this step, in double precision. [parameters]"""
    size = settings.world_size * settings.batch_size
    model, (inputs, targets) = _model(point).double(), data(settings)
    rows = slice(step * size, (step + 1) * size)
    functional.mse_loss(model(inputs[rows].double()), targets[rows].double()).backward()  # type: ignore[no-untyped-call]
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def _loss(point: Tensor, rows: Sequence[int], settings: Settings) -> float:
    inputs, targets = data(settings)
    with torch.no_grad():
        return float(functional.mse_loss(_model(point)(inputs[rows]), targets[rows]))


def _model(point: Tensor) -> nn.Module:
    model = Noting(Notes())
    vector_to_parameters(point.clone(), model.parameters())  # which become views of what they are given
    return model.layers.requires_grad_(True)


def _foreign(seen: Seen, rank: int, step: int) -> bool:
    settings = seen.settings
    own = batch_slice(step, rank, settings.world_size, settings.batch_size)
    return sorted(seen.ranks[rank].rows[step]) != list(range(own.start, own.stop))
