"""Random numbers inside a parallel region: other ones on each rank, and nothing changed outside.

Outside, all ranks drop the same elements, since they hold the same tensors and their generators are in the same state.
Inside they hold different parts: the same generator would drop the same places of each, and what should be N
independent draws would be one. Megatron-LM keeps two generator states and switches (its ``CudaRNGStatesTracker``); here
the second one is derived anew at each entrance, from a number that all ranks draw alike.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
import torch.distributed as dist

_LARGEST = 2**31


@contextlib.contextmanager
def own_randomness(group: dist.ProcessGroup | None = None) -> Iterator[None]:
    """A block in which torch draws other numbers on each rank; afterwards all generators agree as they did before."""
    common = int(torch.randint(_LARGEST, ()))
    with torch.random.fork_rng():
        torch.manual_seed(common + dist.get_rank(group))
        yield
