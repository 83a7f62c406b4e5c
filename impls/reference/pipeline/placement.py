"""Which rank holds which stage. N ranks; a stage is a piece of consecutive layers.

one stage each     rank r: stage r                     GPipe, 1F1B, ZB-H1, ZB-H2
round robin        rank r: stages r, N+r, 2N+r ...     interleaved 1F1B
V                  rank r: stages r and 2N-1-r         ZBV, DualPipeV: the model goes down and comes back
both ways          rank r: stages r and N-1-r          DualPipe: half of the microbatches enter at each end
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """``ranks[direction][stage]``: the rank that holds a stage for microbatches that travel in that direction.

    There is one direction, except where copies of the model let microbatches enter at both ends.
    """

    ranks: tuple[tuple[int, ...], ...]

    @property
    def num_stages(self) -> int:
        """The pieces that the model is cut into."""
        return len(self.ranks[0])

    @property
    def num_directions(self) -> int:
        """1, or 2 when microbatches enter at both ends."""
        return len(self.ranks)

    def direction_of(self, microbatch: int, num_microbatches: int) -> int:
        """The first microbatches of a step take direction 0, as many take direction 1."""
        return microbatch * self.num_directions // num_microbatches

    def rank_of(self, stage: int, direction: int = 0) -> int:
        """The rank on which `stage` works for microbatches of `direction`."""
        return self.ranks[direction][stage]

    def stages_of(self, rank: int) -> list[int]:
        """The stages that `rank` holds, in their order."""
        return sorted({stage for ranks in self.ranks for stage, holder in enumerate(ranks) if holder == rank})


def one_stage_each(num_ranks: int) -> Placement:
    """Stage r on rank r."""
    return Placement((tuple(range(num_ranks)),))


def round_robin(num_ranks: int, num_chunks: int) -> Placement:
    """`num_chunks` stages on each rank, dealt out in turn."""
    return Placement((tuple(range(num_ranks)) * num_chunks,))


def v_shape(num_ranks: int) -> Placement:
    """Two stages on each rank: down from rank 0 to N-1, and back up."""
    down = tuple(range(num_ranks))
    return Placement((down + down[::-1],))


def both_ways(num_ranks: int) -> Placement:
    """Two copies of the model: direction 0 starts on rank 0, direction 1 on rank N-1."""
    down = tuple(range(num_ranks))
    return Placement((down, down[::-1]))
