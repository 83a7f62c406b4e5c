"""GPipe, 1F1B and interleaved 1F1B: the order in which each rank works, in named phases. N ranks, M microbatches.

    GPipe    all forwards, then all backwards: M microbatches are held
    1F1B     no more forwards ahead than it takes to reach the last rank: rank r holds min(M, N-r)

Sources: Huang et al. 2019, GPipe (1811.06965), section 2.3; Narayanan et al. 2021, Megatron-LM (2104.04473),
section 2.2.
"""

from __future__ import annotations

from impls.reference.pipeline.actions import Kind, Numbering, Schedule
from impls.reference.pipeline.placement import one_stage_each
from impls.reference.pipeline.rows import Row, alternate, join


def gpipe(num_stages: int, num_microbatches: int) -> Schedule:
    """GPipe on `num_stages` ranks: forward of all microbatches, then backward of all.

    Backward goes in the order of the microbatches; the paper's figure has them in reverse, which takes the same time.
    ValueError unless N >= 1 and M >= 1.
    """
    require_sizes("GPipe", num_stages, num_microbatches)
    number = Numbering(num_stages, num_microbatches)

    def row(rank: int) -> Row:
        forwards, backwards = number.of(Kind.FORWARD, rank), number.of(Kind.BACKWARD, rank)
        return join(forwards, backwards)

    return Schedule.from_rows("gpipe", num_microbatches, one_stage_each(num_stages), list(map(row, range(num_stages))))


def one_f_one_b(num_stages: int, num_microbatches: int) -> Schedule:
    """1F1B on `num_stages` ranks: after a warm-up every forward is followed by a backward.

    The warm-up of rank r is one forward for each rank behind it, or fewer when there are fewer microbatches.
    ValueError unless N >= 1 and M >= 1.
    """
    require_sizes("1F1B", num_stages, num_microbatches)
    number = Numbering(num_stages, num_microbatches)

    def row(rank: int) -> Row:
        forwards, backwards = number.of(Kind.FORWARD, rank), number.of(Kind.BACKWARD, rank)
        ahead = min(num_stages - 1 - rank, num_microbatches)
        warm_up = forwards[:ahead]
        steady = alternate(forwards[ahead:], backwards[: num_microbatches - ahead])
        cool_down = backwards[num_microbatches - ahead :]
        return join(warm_up, steady, cool_down)

    return Schedule.from_rows("1f1b", num_microbatches, one_stage_each(num_stages), list(map(row, range(num_stages))))


def require_sizes(name: str, num_ranks: int, num_microbatches: int) -> None:
    """ValueError unless there is at least one rank and one microbatch."""
    require(name, num_ranks >= 1 and num_microbatches >= 1, "N >= 1 and M >= 1", num_ranks, num_microbatches)


def require(name: str, legal: bool, rule: str, num_ranks: int, num_microbatches: int) -> None:
    """ValueError with the `rule` unless the sizes are `legal`."""
    if not legal:
        raise ValueError(f"{name} needs {rule}; got N = {num_ranks} ranks and M = {num_microbatches} microbatches")
