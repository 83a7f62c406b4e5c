"""A machine that is busy with something else."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterator

NUM_BURNERS = int(os.environ.get("LOCKSTEP_BURNERS", "0"))


def _burn() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        sum(range(100_000))


@contextlib.contextmanager
def busy(num_burners: int = NUM_BURNERS) -> Iterator[None]:
    """Inside, so many processes take the processors away."""
    burners = [multiprocessing.get_context("spawn").Process(target=_burn, daemon=True) for _ in range(num_burners)]
    for burner in burners:
        burner.start()
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.join()
