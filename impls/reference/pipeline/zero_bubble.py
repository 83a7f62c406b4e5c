"""ZB-H1, ZB-H2 and ZBV: backward in two halves, I for the rank that waits and W for when there is nothing else to do.

Nobody waits for W, so a rank puts some of them off and does them where it would be idle at the end. The price is
memory: a microbatch's activations are held until its W.

    ZB-H1   as much memory as 1F1B on its first rank, N microbatches, on every rank; about a third of its bubble
    ZB-H2   up to 2N-1 held, no idle time between a rank's first action and its last
    ZBV     two stages per rank in a V: N held, and no such idle time when F = I = W

Source: Qi et al. 2023, Zero Bubble Pipeline Parallelism (2401.10241): section 2 for H1 and H2, section 6 for ZBV.
N ranks, M microbatches.
"""

from __future__ import annotations

from impls.reference.pipeline.actions import Kind, Numbering, Schedule
from impls.reference.pipeline.placement import one_stage_each, v_shape
from impls.reference.pipeline.rows import Row, alternate, join
from impls.reference.pipeline.schedules import require


def zb_h1(num_stages: int, num_microbatches: int) -> Schedule:
    """ZB-H1 on `num_stages` ranks: 1F1B in which rank r puts off r weight gradients.

    ValueError unless N >= 1 and M >= 1. Below M = N there are too few of them to fill the bubble as claimed.
    """
    require("ZB-H1", num_stages, num_microbatches)
    return _one_stage_each("zb_h1", num_stages, num_microbatches, spread=1)


def zb_h2(num_stages: int, num_microbatches: int) -> Schedule:
    """ZB-H2 on `num_stages` ranks: twice as many forwards ahead as in ZB-H1 and twice as many weight gradients put off.

    ValueError unless M >= 2N-1.
    """
    sizes = (num_stages, num_microbatches)
    require("ZB-H2", *sizes, legal=num_microbatches >= 2 * num_stages - 1, rule="N >= 1 and M >= 2N-1")
    return _one_stage_each("zb_h2", num_stages, num_microbatches, spread=2)


def _one_stage_each(name: str, num_ranks: int, num_microbatches: int, *, spread: int) -> Schedule:
    number = Numbering(num_ranks, num_microbatches)

    def row(rank: int) -> Row:
        forwards, inputs, weights = (number.of(kind, rank) for kind in (Kind.FORWARD, Kind.INPUT, Kind.WEIGHT))
        ahead = min(spread * (num_ranks - 1 - rank), num_microbatches)
        turns = num_microbatches - ahead  # how many I have a new forward before them
        put_off = min(spread * rank, turns)
        warm_up = forwards[:ahead]
        filling = alternate(forwards[ahead : ahead + put_off], inputs[:put_off])
        steady = alternate(forwards[ahead + put_off :], inputs[put_off:turns], weights[: turns - put_off])
        cool_down = alternate(inputs[turns:], weights[turns - put_off : num_microbatches - put_off])
        remaining = weights[num_microbatches - put_off :]
        return join(warm_up, filling, steady, cool_down, remaining)

    return Schedule.from_rows(name, num_microbatches, one_stage_each(num_ranks), list(map(row, range(num_ranks))))


def zbv(num_stages: int, num_microbatches: int) -> Schedule:
    """ZBV on `num_stages` ranks with 2N stages: rank r holds stage r of the way down and stage 2N-1-r of the way up.

    The last stage is beside the first one on rank 0, so a microbatch's backward begins where its forward began.
    ValueError unless M >= 2N-1.
    """
    sizes = (num_stages, num_microbatches)
    require("ZBV", *sizes, legal=num_microbatches >= 2 * num_stages - 1, rule="N >= 1 and M >= 2N-1")
    number = Numbering(2 * num_stages, num_microbatches)
    split = (Kind.FORWARD, Kind.INPUT, Kind.WEIGHT)

    def row(rank: int) -> Row:
        down_f, down_i, down_w = (number.of(kind, rank) for kind in split)
        up_f, up_i, up_w = (number.of(kind, 2 * num_stages - 1 - rank) for kind in split)
        behind = num_stages - rank  # ranks from this one to the bottom of the V
        ahead = 2 * num_stages - 1 - rank  # forwards on the way down before the first backward of that stage
        both = num_microbatches - ahead  # turns in which there is still a forward on the way down
        turns = num_microbatches - num_stages

        until_first_returns = down_f[: 2 * behind - 1]
        returning = alternate(up_f[:rank], down_f[2 * behind - 1 : ahead])
        first_backwards = alternate(up_f[rank:num_stages], up_i[:behind], up_w[:behind])
        warm_up = join(until_first_returns, returning, first_backwards)

        up = (up_f[num_stages:], up_i[behind : behind + turns], up_w[behind : behind + turns])
        steady = alternate(down_f[ahead:], down_i[:both], down_w[:both], *(part[:both] for part in up))
        without_new = alternate(down_i[both:turns], down_w[both:turns], *(part[both:] for part in up))

        late_inputs = alternate(down_i[turns : turns + rank], up_i[behind + turns :])
        last_inputs = alternate(down_i[turns + rank :], down_w[turns : turns + behind])
        cool_down = join(late_inputs, last_inputs, up_w[behind + turns :], down_w[turns + behind :])
        return join(warm_up, steady, without_new, cool_down)

    return Schedule.from_rows("zbv", num_microbatches, v_shape(num_stages), list(map(row, range(num_stages))))
