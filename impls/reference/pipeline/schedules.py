"""GPipe, 1F1B and interleaved 1F1B: the order in which each rank works, in named phases. N ranks, M microbatches.

    GPipe              all forwards, then all backwards: M microbatches are held
    1F1B               no more forwards ahead than it takes to reach the last rank: rank r holds min(M, N-r)
    interleaved 1F1B   v stages on each rank: the pipeline fills in 1/v of the time, for v times the messages

Sources: Huang et al. 2019, GPipe (1811.06965), section 2.3; Narayanan et al. 2021, Megatron-LM (2104.04473),
sections 2.2.1 and 2.2.2.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np

from impls.reference.pipeline.actions import Kind, Numbering, Schedule
from impls.reference.pipeline.placement import one_stage_each, round_robin
from impls.reference.pipeline.rows import Row, alternate, join
from impls.words import number_of


def gpipe(num_stages: int, num_microbatches: int) -> Schedule:
    """GPipe on `num_stages` ranks: forward of all microbatches, then backward of all.

    Backward goes in the order of the microbatches; the paper's figure has them in reverse, which takes the same time.
    ValueError unless N >= 1 and M >= 1.
    """
    require("GPipe", num_stages, num_microbatches)
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
    require("1F1B", num_stages, num_microbatches)
    number = Numbering(num_stages, num_microbatches)

    def row(rank: int) -> Row:
        forwards, backwards = number.of(Kind.FORWARD, rank), number.of(Kind.BACKWARD, rank)
        return _one_ahead(forwards, backwards, ahead=num_stages - 1 - rank)

    return Schedule.from_rows("1f1b", num_microbatches, one_stage_each(num_stages), list(map(row, range(num_stages))))


def interleaved_1f1b(num_stages: int, num_microbatches: int, num_chunks: int = 2) -> Schedule:
    """1F1B with `num_chunks` stages on each of `num_stages` ranks; stage = chunk * N + rank.

    N microbatches go through a rank's first chunk, the same ones through its next, and then come the next N: so the
    last rank's output of one chunk is there when rank 0 begins the next. Backward takes the chunks in reverse.
    ValueError unless N divides M.
    """
    sizes = (num_stages, num_microbatches)
    require("interleaved 1F1B", *sizes)
    require("interleaved 1F1B", *sizes, legal=num_microbatches % num_stages == 0, rule="N divides M")
    require("interleaved 1F1B", *sizes, legal=num_chunks >= 1, rule=f"at least 1 chunk per rank, not {num_chunks}")
    number = Numbering(num_chunks * num_stages, num_microbatches)

    def in_groups(kind: Kind, stages: range) -> Row:
        """All microbatches on all `stages`: N at a time on the first stage, then on the next."""
        chunks = np.stack([number.of(kind, stage) for stage in stages])
        return chunks.reshape(num_chunks, -1, num_stages).swapaxes(0, 1).ravel()

    def row(rank: int) -> Row:
        stages = range(rank, number.num_stages, num_stages)
        forwards, backwards = in_groups(Kind.FORWARD, stages), in_groups(Kind.BACKWARD, stages[::-1])
        return _one_ahead(forwards, backwards, ahead=2 * (num_stages - 1 - rank) + (num_chunks - 1) * num_stages)

    placement = round_robin(num_stages, num_chunks)
    return Schedule.from_rows("interleaved_1f1b", num_microbatches, placement, list(map(row, range(num_stages))))


def _one_ahead(forwards: Row, backwards: Row, ahead: int) -> Row:
    """`ahead` forwards, or all if there are fewer; then forward and backward in turn; then the remaining backwards."""
    ahead = min(ahead, len(forwards))
    turns = len(forwards) - ahead
    warm_up = forwards[:ahead]
    steady = alternate(forwards[ahead:], backwards[:turns])
    cool_down = backwards[turns:]
    return join(warm_up, steady, cool_down)


def require(
    name: str, num_ranks: int, num_microbatches: int, *, legal: bool = True, rule: str = "N >= 1 and M >= 1"
) -> None:
    """ValueError with the schedule's `rule`, unless the sizes are `legal` and there is at least one of each."""
    whole = isinstance(num_ranks, Integral) and isinstance(num_microbatches, Integral)
    if not (legal and whole and num_ranks >= 1 and num_microbatches >= 1):
        raise ValueError(
            f"{name} needs {rule}; got N = {number_of(num_ranks, 'rank')} and M = "
            f"{number_of(num_microbatches, 'microbatch')}"
        )
