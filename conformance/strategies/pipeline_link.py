"""Bytes that a rank sends in a step, under a pipeline, data and tensor parallelism: the closed forms, over shapes.

One activation and one gradient cross a boundary for each token. DDP all-reduces every gradient. Tensor parallelism
all-reduces the tokens' activations once forward and once backward for each column-row pair of matrices; a transformer
layer has two pairs. An all-reduce of T bytes sends 2T(N-1)/N.
"""

from __future__ import annotations

import dataclasses

from fixtures.shapes import LLAMA_3_70B

PAIRS_PER_LAYER = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A model, the tokens of a step, and the ranks; `tokens` are those of the whole pipeline, or of each replica."""

    name: str
    num_parameters: float
    num_pairs: int
    width: int
    tokens: int
    world_size: int
    bytes_each: int  # of an activation's element, and of a gradient's

    @property
    def pipeline_bytes(self) -> float:
        """Of a rank between two others: activations on, gradients back."""
        return 2 * self.activation_bytes

    @property
    def ddp_bytes(self) -> float:
        """2T(N-1)/N of all gradients."""
        return self._all_reduced(self.num_parameters * self.bytes_each)

    @property
    def tensor_bytes(self) -> float:
        """Two all-reduces of an activation for each pair."""
        return 2 * self.num_pairs * self._all_reduced(self.activation_bytes)

    @property
    def activation_bytes(self) -> float:
        """All tokens at one boundary."""
        return self.tokens * self.width * self.bytes_each

    @property
    def does_with_least(self) -> bool:
        """Whether the pipeline sends less than both others."""
        return self.pipeline_bytes < min(self.ddp_bytes, self.tensor_bytes)

    def told(self) -> str:
        """The three figures."""
        return (
            f"{self.name}: pipeline {_told(self.pipeline_bytes)}, DDP {_told(self.ddp_bytes)}, "
            f"tensor parallelism {_told(self.tensor_bytes)}"
        )

    def _all_reduced(self, num_bytes: float) -> float:
        return 2 * num_bytes * (self.world_size - 1) / self.world_size


def _told(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.3g} GB" if num_bytes >= 1e8 else f"{num_bytes:,.0f} bytes"


WORKLOADS = (
    Workload(
        name="70e9 parameters in 80 layers on 8 ranks, 65,536 tokens a step",
        num_parameters=LLAMA_3_70B.nominal,
        num_pairs=PAIRS_PER_LAYER * LLAMA_3_70B.num_layers,
        width=LLAMA_3_70B.width,
        tokens=65_536,
        world_size=8,
        bytes_each=2,
    ),
    Workload(
        name="124e6 parameters in 12 layers on 12 ranks, 524,288 tokens a step",
        num_parameters=124e6,
        num_pairs=PAIRS_PER_LAYER * 12,
        width=768,
        tokens=524_288,
        world_size=12,
        bytes_each=2,
    ),
)
