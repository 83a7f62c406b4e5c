"""Data parallelism: the wrapper and the worker loop around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

# What lesson 48 (python -m lessons ddp) does when its command line does not say.
DEFAULT_WORLD_SIZE: int | None = None  # ranks
DEFAULT_BACKEND: str | None = None  # of the process group
DEFAULT_NUM_STEPS: int | None = None  # optimizer steps
DEFAULT_BATCH_SIZE: int | None = None  # rows that each rank reads in a step


class DataParallel(nn.Module):
    """Rank 0's parameters and buffers everywhere at construction; after backward, gradients are the mean over ranks."""

    module: nn.Module

    def __init__(
        self,
        module: nn.Module,
        world_size: int,
        group: torch.distributed.ProcessGroup | None = None,
        bucket_cap_mb: float = 25.0,
    ) -> None:
        raise NotImplementedError

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward pass."""
        return self.module(*args, **kwargs)

    def sync_grads(self) -> None:
        """Make every gradient the mean over ranks; drop this method if ``backward()`` does that by itself."""
        raise NotImplementedError

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside only accumulate; drop this method if you do not offer it."""
        raise NotImplementedError
        yield


def init_group(rank: int, world_size: int, init_file: str) -> None:
    """Join the default gloo group through `init_file`, which does not exist yet; or ask for `port` instead."""
    raise NotImplementedError


def broadcast_parameters(module: nn.Module, src: int) -> None:
    """Make every parameter and buffer equal to rank `src`'s."""
    raise NotImplementedError


def sum_gradients(module: nn.Module) -> None:
    """Replace every gradient by its sum over ranks."""
    raise NotImplementedError


def average_gradients(module: nn.Module, world_size: int) -> None:
    """Replace every gradient by its mean over ranks."""
    raise NotImplementedError


def batch_slice(step: int, rank: int, world_size: int, batch_size: int) -> slice:
    """This rank's rows in this step."""
    raise NotImplementedError


def train(
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
    """The whole worker: join the group (unless there is one), seed, build, wrap, train; the trained model."""
    raise NotImplementedError
