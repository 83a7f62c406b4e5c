"""One training by a pipeline, as data: which stages, which microbatches, how many steps. Imports no pytest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from conformance.pipeline import models
from fixtures.world.per_rank import PerRank
from impls.reference.pipeline.placement import Placement, both_ways, one_stage_each, round_robin, v_shape

NUM_CHUNKS = 2  # stages on each rank, where a schedule has several
SEVERAL = {"interleaved_1f1b": NUM_CHUNKS, "zbv": 2, "dualpipev": 2, "dualpipe": 2}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`sizes`: the rows of each microbatch. `steps` follow each other without clearing gradients."""

    sizes: tuple[int, ...]
    model: str = "plain"
    steps: int = 1
    dtype: torch.dtype = torch.float32
    real: bool = False

    @property
    def called(self) -> str:
        """A few words for messages."""
        dtype = "" if self.dtype is torch.float32 else f" in {str(self.dtype).removeprefix('torch.')}"
        kind = "real numbers" if self.real else "integers"
        return f"{len(self.sizes)} microbatches of {list(self.sizes)} rows, {self.model} stages, {kind}{dtype}"

    @property
    def loss(self) -> Callable[[Tensor, Tensor], Tensor]:
        """The loss of a microbatch."""
        return models.squared if self.real else models.weighted

    def build(self, num_stages: int, dtype: torch.dtype | None = None) -> list[nn.Module]:
        """All stages."""
        ones = self.dtype is torch.bfloat16
        return models.build(self.model, num_stages, dtype or self.dtype, real=self.real, ones=ones)

    def data(self) -> tuple[list[Tensor], list[Tensor]]:
        """Microbatches and targets."""
        return models.data(self.model, self.sizes, self.dtype, real=self.real)

    def share(self, places: Placement, rank: int) -> dict[str, Any]:
        """What crosses to a rank: the fields of its `Share`."""
        stages, (inputs, targets) = self.build(places.num_stages), self.data()
        own = places.stages_of(rank)
        return {
            "called": self.called,
            "model": self.model,
            "num_stages": places.num_stages,
            "states": {stage: dict(stages[stage].state_dict()) for stage in own},
            "inputs": inputs if 0 in own else [torch.zeros_like(x) for x in inputs],
            "targets": targets,
            "steps": self.steps,
            "dtype": self.dtype,
            "real": self.real,
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one rank is given of a case: the weights of its own stages, and the inputs where the first one is.

    Elsewhere the microbatches are zeros of the same shapes, so that activations have to come from the stage before.
    """

    called: str
    model: str
    num_stages: int
    states: Mapping[int, Mapping[str, Tensor]]  # by stage and name
    inputs: list[Tensor]
    targets: list[Tensor]
    steps: int
    dtype: torch.dtype
    real: bool

    @property
    def loss(self) -> Callable[[Tensor, Tensor], Tensor]:
        """The loss of a microbatch."""
        return models.squared if self.real else models.weighted

    def build(self) -> dict[int, nn.Module]:
        """This rank's stages by their numbers."""
        return {
            stage: models.one(self.model, stage, self.num_stages, self.dtype, state)
            for stage, state in self.states.items()
        }


def shares(cases: Sequence[Case], schedule: str, world_size: int) -> PerRank:
    """For each rank its fields of every case, under a schedule."""
    places = placement(schedule, world_size)
    return PerRank([[case.share(places, rank) for case in cases] for rank in range(world_size)])


def placement(schedule: str, num_ranks: int) -> Placement:
    """Which rank holds which stage under `schedule`."""
    if schedule == "interleaved_1f1b":
        return round_robin(num_ranks, NUM_CHUNKS)
    if schedule in ("zbv", "dualpipev"):
        return v_shape(num_ranks)
    return both_ways(num_ranks) if schedule == "dualpipe" else one_stage_each(num_ranks)


def loss_ranks(schedule: str, num_ranks: int, num_microbatches: int) -> dict[int, list[int]]:
    """The ranks that see losses, each with the numbers of its microbatches."""
    places = placement(schedule, num_ranks)
    found: dict[int, list[int]] = {}
    for microbatch in range(num_microbatches):
        direction = places.direction_of(microbatch, num_microbatches)
        found.setdefault(places.rank_of(places.num_stages - 1, direction), []).append(microbatch)
    return found
