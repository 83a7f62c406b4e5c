"""Block `cures`: an implementation's own cures of the failure modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # names in signatures only: pytest's controller reads the tables and never needs torch
    from torch import Tensor, nn


class Cures(Protocol):
    """Cures of the failure modes in ``fixtures/faults``. Where none is provided, a scenario takes the reference's."""

    def cure_missing_broadcast(self, module: nn.Module) -> None:
        """Bring replicas that were initialised differently together: parameters and buffers become rank 0's."""

    def cure_shared_shuffle_seed(self, num_samples: int, rank: int, world_size: int, seed: int) -> Sequence[int]:
        """The samples that this rank reads in one epoch, in order: with the other ranks', each of them once.

        Shuffled by `seed`, which is the same on all ranks; equally many for each rank where `world_size` divides their
        number. Called between the seeding of a model and its making: torch's global generator stays as it is.
        """

    def cure_unused_parameter_deadlock(self, module: nn.Module, world_size: int) -> None:
        """Replace every gradient by its mean over ranks, though a parameter may have none on some ranks, or on all.

        A missing gradient counts as zero.
        """

    def cure_slow_accumulation(
        self, module: nn.Module, microbatches: Sequence[Tensor], loss_fn: Callable[[Tensor], Tensor]
    ) -> None:
        """Forward and backward of all microbatches of a step, with one reduction after the last.

        `module` is a data-parallel wrapper with `no_sync()`; its gradients become the mean over ranks of the sum over
        microbatches. `loss_fn` takes the module's output.
        """

    def cure_sum_without_divide(self, module: nn.Module, world_size: int) -> None:
        """The gradients hold their sums over ranks: make them those of one process on the global batch.

        Each rank's loss is the mean over its equal part of that batch.
        """

    def cure_pipeline_send_send(self, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """Give `tensor` to the next rank of a ring and return the previous rank's, over a transport without buffers."""

    def cure_fsdp_70b_over_80gb(
        self, num_parameters: int, bytes_per_parameter: int, device_bytes: int, ranks_per_node: int
    ) -> int:
        """The fewest ranks, in whole nodes, on which the states of a fully sharded model fit into `device_bytes` each.

        `bytes_per_parameter` are those of all states together, unsharded: 12, or 16 with an FP32 master copy.
        """
