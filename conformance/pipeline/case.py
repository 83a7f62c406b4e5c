"""One training by a pipeline, as data: which stages, which microbatches, how many steps. Imports no pytest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from conformance.pipeline import models
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

    def fields(self) -> dict[str, Any]:
        """What crosses to the ranks."""
        return dataclasses.asdict(self)


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
