"""Block `data_parallel`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # names in signatures only: pytest's controller reads the tables and never needs torch
    from torch import Tensor, nn
    from torch.distributed import ProcessGroup


class Wrapper(Protocol):
    """What `DataParallel` returns: called like the module it wraps, and at the least not hiding it."""

    module: nn.Module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward pass."""

    def sync_grads(self) -> None:
        """Optional: after it returns, every ``.grad`` is the mean over ranks. Called once after each last backward.

        Other spellings: see `SYNC_METHODS`. A wrapper without one has to be ready when ``backward()`` returns.
        """

    def no_sync(self) -> AbstractContextManager[None]:
        """Optional: backward passes in it only accumulate; the next one outside reduces all that gathered."""


class DataParallelBlock(Protocol):
    """Data parallelism: full replicas, a batch slice each, gradients averaged. Source: Li et al. 2020, PyTorch DDP.

    The four constants are what lesson 48 (``python -m lessons ddp``) does when its command line does not say; whoever
    defines none of them gets the values named here.
    """

    DEFAULT_WORLD_SIZE: int  # ranks: 2
    DEFAULT_BACKEND: str  # of the process group: "gloo", and "nccl" only where there are CUDA devices
    DEFAULT_NUM_STEPS: int  # optimizer steps: 6
    DEFAULT_BATCH_SIZE: int  # rows that each rank reads in a step: 8, so the global batch has 8N

    def DataParallel(  # noqa: N802  (a class, usually)
        self, module: nn.Module, world_size: int, group: ProcessGroup | None, bucket_cap_mb: float
    ) -> Wrapper:
        """Wrap `module`: parameters and buffers become rank 0's at once, gradients the mean over ranks in each step.

        The mean is that of the ranks' gradients, a parameter that a rank did not use counting as zero there; one
        that no rank used keeps ``grad`` None or gets zeros. `bucket_cap_mb`: the largest bucket in MiB, 25 by default.
        """

    def init_group(self, rank: int, world_size: int, init_file: str, port: int) -> None:
        """Join the default gloo group: through the fresh file `init_file`, or by MASTER_ADDR and MASTER_PORT."""

    def broadcast_parameters(self, module: nn.Module, src: int) -> None:
        """Make every parameter (and buffer) equal to rank `src`'s."""

    def sum_gradients(self, module: nn.Module) -> None:
        """Replace every ``.grad`` by its sum over ranks, strided ones too; None on all ranks stays None."""

    def average_gradients(self, module: nn.Module, world_size: int) -> None:
        """Replace every ``.grad`` by its mean over ranks."""

    def batch_slice(self, step: int, rank: int, world_size: int, batch_size: int) -> slice:
        """This rank's rows in this step: `batch_size` from ``step * world_size * batch_size + rank * batch_size``."""

    def train(
        self,
        rank: int,
        world_size: int,
        init_file: str,
        make_model: Callable[[], nn.Module],
        inputs: Tensor,
        targets: Tensor,
        steps: int,
        batch_size: int,
        learning_rate: float,
        seed: int,
    ) -> nn.Module:
        """The whole worker: join the group, seed, build, wrap, train with SGD on the mean squared error; the model.

        `inputs` [rows, ...] and `targets` [rows, ...] are the whole data set, equal on all ranks. Joins the group only
        when there is none yet, and leaves it open. What `make_model` builds may differ between ranks, as where each
        seeds itself: wrapping it makes all of them rank 0's.
        """
