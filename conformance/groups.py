"""Groups that are not the whole world, made and left in order; used in rank programs, so no pytest here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch.distributed as dist


@contextlib.contextmanager
def own_group(groups: Sequence[Sequence[int]]) -> Iterator[dist.ProcessGroup]:
    """The one of the groups that this rank is in; all are made by all ranks, and are gone afterwards."""
    made = [dist.new_group(list(ranks)) for ranks in groups]
    mine = next(group for group, ranks in zip(made, groups, strict=True) if dist.get_rank() in ranks)
    yield mine
    dist.barrier()
    dist.destroy_process_group(mine)
