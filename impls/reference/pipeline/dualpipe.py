"""DualPipe and DualPipeV: every rank has two stages, and overlaps the forward of one with the backward of the other.

In DualPipe half of the microbatches enter at each end, so rank r holds stage r and stage N-1-r of N, and every stage
exists twice. DualPipeV is its half: the N ranks of DualPipeV are one half of a DualPipe of 2N, where what would
cross to the other half turns round in a V. So one function writes both. Seen from a rank, its **near** stage is the
one closer to where microbatches come in (DualPipe's nearer end, DualPipeV's way down), the other is the **far** one.

Sources: DeepSeek-AI 2024, DeepSeek-V3 (2412.19437), section 3.2.1; the description of DualPipe and DualPipeV in the
repository deepseek-ai/DualPipe. N ranks, M microbatches.
"""

from __future__ import annotations

import dataclasses

from impls.reference.pipeline.actions import Kind, Numbering, Schedule
from impls.reference.pipeline.placement import both_ways, v_shape
from impls.reference.pipeline.rows import Row, alternate, join, pair
from impls.reference.pipeline.schedules import require


def dualpipe(num_stages: int, num_microbatches: int) -> Schedule:
    """DualPipe on `num_stages` ranks: microbatches 0 to M/2-1 enter at rank 0, the others at rank N-1.

    ValueError unless N and M are even and M >= 2N.
    """
    even = num_stages % 2 == 0 and num_microbatches % 2 == 0
    legal = even and num_microbatches >= 2 * num_stages
    require("DualPipe", num_stages, num_microbatches, legal=legal, rule="N even, M even and M >= 2N")
    number, half = Numbering(num_stages, num_microbatches), num_microbatches // 2

    def row(rank: int) -> Row:
        mirrored = num_stages - 1 - rank
        from_start = _Stage.cut(number, rank, slice(half))
        from_end = _Stage.cut(number, mirrored, slice(half, None))
        near, far = (from_start, from_end) if rank < mirrored else (from_end, from_start)
        return _row(near, far, place=min(rank, mirrored), depth=num_stages // 2)

    return Schedule.from_rows("dualpipe", num_microbatches, both_ways(num_stages), list(map(row, range(num_stages))))


def dualpipev(num_stages: int, num_microbatches: int) -> Schedule:
    """DualPipeV on `num_stages` ranks with 2N stages: rank r holds stages r and 2N-1-r, every stage once.

    ValueError unless M >= 2N.
    """
    legal = num_microbatches >= 2 * num_stages
    require("DualPipeV", num_stages, num_microbatches, legal=legal, rule="N >= 1 and M >= 2N")
    number = Numbering(2 * num_stages, num_microbatches)

    def row(rank: int) -> Row:
        near, far = (_Stage.cut(number, stage, slice(None)) for stage in (rank, 2 * num_stages - 1 - rank))
        return _row(near, far, place=rank, depth=num_stages)

    return Schedule.from_rows("dualpipev", num_microbatches, v_shape(num_stages), list(map(row, range(num_stages))))


@dataclasses.dataclass(frozen=True, slots=True)
class _Stage:
    """The actions of one stage, by kind and in order of microbatch."""

    f: Row
    b: Row
    i: Row
    w: Row

    @classmethod
    def cut(cls, number: Numbering, stage: int, microbatches: slice) -> _Stage:
        return cls(*(number.of(kind, stage)[microbatches] for kind in Kind))


def _row(near: _Stage, far: _Stage, *, place: int, depth: int) -> Row:
    """The eight phases of a rank that is `place` steps from where its near microbatches enter, `depth` ranks deep.

    Both stages handle equally many microbatches. Forwards of the near stage run ahead of those of the far one, and so
    do the far stage's backwards.
    """
    count = len(near.f)
    inner = depth - 1 - place  # ranks between this one and the middle, or the bottom of the V
    own = place + 1
    started = 2 * inner + own  # near forwards before the overlapped phase
    turns = count - started

    near_only = near.f[: 2 * inner]
    both_forward = alternate(near.f[2 * inner : started], far.f[:own])
    first_backwards = alternate(far.i[:inner], far.w[:inner], far.f[own:depth])

    near_pairs = pair(near.f[started:], far.b[inner : inner + turns])
    far_pairs = pair(far.f[depth : depth + turns], near.b[:turns])
    overlapped = alternate(near_pairs, far_pairs)
    if inner == 0:  # the innermost rank would wait for the first pair's backward: it does the forward meanwhile
        overlapped = join(near.f[started : started + 1], far.b[:1], overlapped[1:])

    late_pairs = pair(far.f[depth + turns :], near.b[turns : turns + inner])
    drain = alternate(far.b[inner + turns : 2 * inner + turns], late_pairs)

    last_far, last_near = slice(count - own, None), slice(turns + inner, turns + inner + own)
    whole = alternate(far.b[last_far], near.b[last_near])
    inputs, weights = alternate(far.i[last_far], near.i[last_near]), alternate(far.w[last_far], near.w[last_near])
    both_backward = join(whole[:own], inputs[own:])  # from half-way on, weight gradients are put off

    put_off = join(weights[own:], near.w[count - inner :])
    near_backward = alternate(put_off[:inner], near.i[count - inner :])
    remaining = put_off[inner:]

    warm_up = join(near_only, both_forward, first_backwards)
    cool_down = join(drain, both_backward, near_backward, remaining)
    return join(warm_up, overlapped, cool_down)
