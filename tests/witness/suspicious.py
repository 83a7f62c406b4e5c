"""Programs that are right and look as if something were wrong: ``program(rank, world_size, folder)``, no pytest here.

As a script (``python -m tests.witness.suspicious NAME...``) each rank runs those named, one after the other.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch.distributed as dist

from tests.witness.suspicious_programs import (
    messages,
    other_waits,
    partial_updates,
    unequal_parts,
    unlike_ranks,
)
from tests.witness.suspicious_programs.entering import PROGRAMS

__all__ = [
    "PROGRAMS",
    "messages",
    "names_for",
    "other_waits",
    "partial_updates",
    "run_named",
    "unequal_parts",
    "unlike_ranks",
]


def run_named(name: str, rank: int, world_size: int, folder: Path) -> None:
    """One program, by name."""
    PROGRAMS[name][0](rank, world_size, folder)


@contextlib.contextmanager
def _group() -> Iterator[tuple[int, int]]:
    dist.init_process_group("gloo")
    yield dist.get_rank(), dist.get_world_size()
    dist.destroy_process_group()


@cache
def names_for(world_size: int) -> list[str]:
    """The programs that want so many ranks."""
    return [name for name, (_, size) in PROGRAMS.items() if size == world_size]


if __name__ == "__main__":
    with _group() as (own_rank, size):
        for each in sys.argv[1:] or names_for(size):
            run_named(each, own_rank, size, Path(tempfile.gettempdir()))
            dist.barrier()  # whoever is done must not send into a program of the others
