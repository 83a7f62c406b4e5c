"""The table of the programs, and what they have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

Program = Callable[[int, int, Path], None]
PROGRAMS: dict[str, tuple[Program, int]] = {}  # by name, with the number of ranks
LATE_S = 0.4  # several times what a verdict takes


def on(world_size: int) -> Callable[[Program], Program]:
    """Enter a program into `PROGRAMS`."""

    def enter(program: Program) -> Program:
        PROGRAMS[program.__name__] = program, world_size
        return program

    return enter


def compute(seconds: float) -> None:
    """Work without a pause."""
    until = time.monotonic() + seconds
    matrix = torch.eye(64)
    while time.monotonic() < until:
        matrix = matrix @ matrix


def ones(numel: int = 4) -> Tensor:
    """A tensor to send."""
    return torch.ones(numel)


def first(rank: int) -> int:
    """A number of microbatches that depends on the rank."""
    return 1 + 2 * rank
