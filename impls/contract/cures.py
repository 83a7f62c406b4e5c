"""Block `cures`: an implementation's own cures of the failure modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # names in signatures only: pytest's controller reads the tables and never needs torch
    from torch import Tensor, nn


class Cures(Protocol):
    """Cures of the failure modes in ``fixtures/faults``. Where none is provided, a scenario takes the reference's."""

    def cure_missing_broadcast(self, module: nn.Module) -> None:
        """Bring replicas that were initialised differently together: parameters and buffers become rank 0's."""

    def cure_pipeline_send_send(self, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """Give `tensor` to the next rank of a ring and return the previous rank's, over a transport without buffers."""

    def cure_fsdp_70b_over_80gb(
        self, num_parameters: int, bytes_per_parameter: int, device_bytes: int, ranks_per_node: int
    ) -> int:
        """The fewest ranks, in whole nodes, on which the states of a fully sharded model fit into `device_bytes` each.

        `bytes_per_parameter` are those of all states together, unsharded: 12, or 16 with an FP32 master copy.
        """
