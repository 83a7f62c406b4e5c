"""A stage ends where its share of the total cost is reached: a layer of several shares leaves the next stages empty."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence

from impls.reference.pipeline.partition import partition as right

BREAKS = ("strategies.pipeline.partition", "resists.unbalanced-stages")


def partition(costs: Sequence[float], num_stages: int) -> list[slice]:
    """Cut where the running sum passes a multiple of the mean stage."""
    right(costs, num_stages)  # refuses what cannot be cut
    sums = list(itertools.accumulate(costs))
    inner = [bisect.bisect_left(sums, stage * sums[-1] / num_stages) + 1 for stage in range(1, num_stages)]
    cuts = [0, *(min(cut, len(costs)) for cut in inner), len(costs)]
    return [slice(*pair) for pair in itertools.pairwise(cuts)]
