"""When memory limits data parallelism and when communication does: the closed form, over shapes.

Every rank holds parameters, gradients and optimizer state whole. A step sends 2T(N-1)/N bytes per rank, which the
backward pass can hide as long as it takes longer: about 4 floating-point operations per parameter and token.
"""

from __future__ import annotations

import dataclasses

GB = 1e9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A model, its share of the batch, and the machine."""

    name: str
    num_parameters: float
    tokens_per_rank: float
    world_size: int
    flops: float  # that a device reaches, per second
    bandwidth: float  # bytes per second and rank
    device_bytes: float

    def state_bytes(self, bytes_per_parameter: float) -> float:
        """Parameters, gradients and optimizer state of one rank; no N in it."""
        return bytes_per_parameter * self.num_parameters

    def backward_s(self) -> float:
        """The backward pass: two matrix products for each of the forward pass, 2 operations per weight and token."""
        return 4 * self.num_parameters * self.tokens_per_rank / self.flops

    def all_reduce_s(self, gradient_bytes_per_parameter: float) -> float:
        """2T(N-1)/N over the bandwidth."""
        total = gradient_bytes_per_parameter * self.num_parameters
        return 2 * total * (self.world_size - 1) / self.world_size / self.bandwidth

    def main_cost(self, bytes_per_parameter: float, gradient_bytes_per_parameter: float = 4.0) -> str:
        """``memory`` where the state exceeds the device, ``communication`` where the all-reduce cannot be hidden."""
        if self.all_reduce_s(gradient_bytes_per_parameter) > self.backward_s():
            return "communication"
        return "memory" if self.state_bytes(bytes_per_parameter) > self.device_bytes else "neither"


SHAPES = (
    Shape(
        name="7e9 parameters, 16384 tokens per rank, links of 100 GB/s",
        num_parameters=7e9,
        tokens_per_rank=16384,
        world_size=8,
        flops=2e14,
        bandwidth=100 * GB,
        device_bytes=80 * GB,
    ),
    Shape(
        name="1e8 parameters, 512 tokens per rank, links of 1 GB/s",
        num_parameters=1e8,
        tokens_per_rank=512,
        world_size=8,
        flops=2e14,
        bandwidth=1 * GB,
        device_bytes=80 * GB,
    ),
)
