"""Whether the bubble grows with the number of microbatches: idle time and its share at three M, and where it does grow.

Idle time does not, in any of the schedules; its share falls. It grows with exposed latency and with unequal stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.gantt import charts
from conformance.pipeline.idle import ENOUGH, IDLE, Drawn, Times, judge_idle, mean, percent, timeline, uneven
from conformance.pipeline.judged import Asked, beside, judge_refused, legal
from conformance.verdict import Tier, Witness
from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.counts import peak_activations
from impls.reference.pipeline.simulate import Timeline

EQUAL = [Times(), Times(2, 2, 2)]
ONE_F_ONE_B = [*EQUAL, Times(1, 2, 1)]
ZERO_BUBBLE = [*EQUAL, Times(2, 2, 1), Times(2, 3, 1), Times(3, 2, 0)]  # W <= min(F, I)
OVERLAPPED = [*EQUAL, Times(2, 2, 1), Times(2, 2, 1, fb=4), Times(1, 1, 0), Times(3, 3, 2, fb=Fraction(13, 2))]  # I = F
LATENCY = Fraction(1, 10)
RANKS = (1, 2, 3, 5, 4)  # the last one is told
PEAKS = [(4, 16), (3, 9), (5, 15), (8, 16)]  # (N, M)
NEVER_ODD = ("dualpipe", "interleaved_1f1b")  # M even, or divided by N


def _judge_growth(
    subject: Subject, judge: Judge, name: str, times: Sequence[Times], ranks: Sequence[int] = RANKS
) -> None:
    """For each N at the fewest M that the formula takes, at about twice and at eight times as many."""
    for num_ranks in ranks:
        fewest = ENOUGH[name](num_ranks)
        counts = [max(fewest, num_ranks), 2 * max(fewest, num_ranks), 8 * num_ranks]
        asked = [Asked(name, num_ranks, count) for count in counts]
        schedules = legal(subject, judge, asked)
        odd = [] if name in NEVER_ODD else [Asked(name, num_ranks, 2 * max(fewest, num_ranks) + 1)]
        for one, schedule in zip([*asked, *odd], [*schedules, *legal(subject, judge, odd)], strict=True):
            for each in times:
                judge_idle(judge, one, schedule, each)
        shares = [timeline(schedule).bubble_share() for schedule in schedules]
        if shares != sorted(shares, reverse=True):
            judge.violated(
                f"{name} on {num_ranks} ranks: the idle share of total time does not fall with M",
                expected="a share that falls",
                observed=", ".join(map(percent, shares)),
                witness=Witness.SIMULATION,
            )
    _tell_growth(judge, asked, schedules)


def _tell_growth(judge: Judge, asked: Sequence[Asked], schedules: Sequence[Schedule]) -> None:
    """The largest N: nothing grows but what latency and a slow stage make grow."""
    plain = [timeline(schedule) for schedule in schedules]
    late = [timeline(schedule, Times(latency=LATENCY)) for schedule in schedules]
    slow = [uneven(schedule) for schedule in schedules]
    idle = [[mean(done.bubble()) for done in row] for row in (plain, late, slow)]
    told = [", ".join(f"{float(each):g}" for each in row) for row in idle]
    shares = ", ".join(percent(done.bubble_share()) for done in plain)
    counts = ", ".join(str(one.num_microbatches) for one in asked)
    formula = IDLE[asked[0].name].text
    judge.holds(
        expected=f"{formula} for every M, a share that falls",
        observed=f"{told[0]}; {shares}",
        witness=Witness.SIMULATION,
        message=f"{asked[0].name} on {asked[0].num_ranks} ranks, F = I = W = 1, M = {counts}: each rank idles for "
        f"{told[0]}, {shares} of the time. With messages that take {LATENCY} it is {told[1]} (mean of the ranks), with "
        f"a last stage that takes twice as long {told[2]}",
        examples=len(schedules),
        data={
            **charts(simulated=plain[0]),
            **_shares(asked, plain),
        },
    )


def _shares(asked: Sequence[Asked], plain: Sequence[Timeline]) -> dict[str, Any]:
    """The idle share of total time at each M, and the formula's for all M in between."""
    name, num_ranks = asked[0].name, asked[0].num_ranks
    counts = [one.num_microbatches for one in asked]
    idle = IDLE[name].value(num_ranks, Times())
    work = 3  # F + I + W of a microbatch

    def share(count: int) -> float:
        return float(Fraction(idle) / (idle + work * count))

    return {
        "plot": "bubble-share",
        "label": f"N = {num_ranks}",
        "line": name,
        "curve": [[count, share(count)] for count in range(counts[0], counts[-1] + 1)],
        "points": [
            {"x": count, "observed": float(done.bubble_share()), "formula": share(count)}
            for count, done in zip(counts, plain, strict=True)
        ],
    }


def _judge_peaks(subject: Subject, judge: Judge, asked: Asked, bound: int | Fraction) -> None:
    (schedule,) = legal(subject, judge, [asked])
    peaks = peak_activations(schedule)
    if max(peaks) > bound:
        judge.violated(
            f"{asked}: rank {peaks.index(max(peaks))} holds {max(peaks)} microbatches' activations at a time, and "
            f"{bound} are enough for this schedule",
            expected=f"at most {bound}",
            observed=str(max(peaks)),
            witness=Witness.SIMULATION,
            unit="microbatches",
        )
    judge.holds(
        expected=f"at most {bound}",
        observed=str(max(peaks)),
        witness=Witness.SIMULATION,
        unit="microbatches",
        message=f"{asked}: the most microbatches' activations that a rank holds at a time",
    )


# -- 1F1B --------------------------------------------------------------------------------------------------------------


@claim("pipeline.bubble-growth.1f1b", provides=["one_f_one_b"])
def test_idle_time_of_1f1b_does_not_grow_with_m(subject: Subject, judge: Judge) -> None:
    _judge_growth(subject, judge, "one_f_one_b", ONE_F_ONE_B)


@claim("pipeline.bubble-growth.1f1b", tier=Tier.CONTRACT, provides=["interleaved_1f1b"])
def test_idle_time_of_interleaved_1f1b_is_a_share_of_that_and_does_not_grow_either(
    subject: Subject, judge: Judge
) -> None:
    for n, m in PEAKS:
        _judge_peaks(subject, judge, Asked("interleaved_1f1b", n, m), bound=Fraction(3 * n - 1, 2))  # N + (N-1)/2
    _judge_growth(subject, judge, "interleaved_1f1b", ONE_F_ONE_B)


@claim("pipeline.bubble-growth.1f1b", tier=Tier.CONTRACT, provides=["interleaved_1f1b"], alone=True)
def test_interleaved_1f1b_refuses_what_it_does_not_allow(subject: Subject, judge: Judge) -> None:
    sizes = [(4, 6), (3, 7), (0, 4), (4, 0)]
    judge_refused(subject, judge, [Asked("interleaved_1f1b", *size) for size in sizes], rule="N divides M, N >= 1")


# -- Zero Bubble -------------------------------------------------------------------------------------------------------


@claim("pipeline.bubble-growth.zb", provides=["zb_h1"])
def test_idle_time_of_zb_h1_does_not_grow_with_m_and_its_memory_stays_that_of_1f1b(
    subject: Subject, judge: Judge
) -> None:
    for n, m in PEAKS:
        _judge_peaks(subject, judge, Asked("zb_h1", n, m), bound=n)
    _judge_growth(subject, judge, "zb_h1", ZERO_BUBBLE)


@claim("pipeline.bubble-growth.zb", provides=["zb_h2"])
def test_idle_time_of_zb_h2_does_not_grow_with_m(subject: Subject, judge: Judge) -> None:
    for n, m in PEAKS:
        _judge_peaks(subject, judge, Asked("zb_h2", n, m), bound=2 * n - 1)
    _judge_growth(subject, judge, "zb_h2", EQUAL)


@claim("pipeline.bubble-growth.zb", provides=["zbv"])
def test_idle_time_of_zbv_does_not_grow_with_m(subject: Subject, judge: Judge) -> None:
    for n, m in PEAKS:
        _judge_peaks(subject, judge, Asked("zbv", n, m), bound=n)
    _judge_growth(subject, judge, "zbv", EQUAL)


@claim("pipeline.bubble-growth.zb", tier=Tier.CONTRACT, provides=["zb_h1"], alone=True)
def test_zb_h1_refuses_what_it_does_not_allow(subject: Subject, judge: Judge) -> None:
    judge_refused(
        subject, judge, [Asked("zb_h1", 0, 4), Asked("zb_h1", 4, 0), Asked("zb_h1", 4, -1)], rule="N >= 1 and M >= 1"
    )


@claim("pipeline.zb.split", provides=["zb_h1"])
def test_bubble_with_a_split_backward_is_n_minus_1_times_f_plus_b_less_2w(subject: Subject, judge: Judge) -> None:
    def body(drawn: Drawn) -> None:
        asked = Asked("zb_h1", drawn.num_ranks, drawn.num_microbatches)
        (schedule,) = legal(subject, judge, [asked])
        judge_idle(judge, asked, schedule, drawn.times)
        judge.holds(
            expected=IDLE["zb_h1"].text,
            observed=IDLE["zb_h1"].text,
            witness=Witness.SIMULATION,
            message="idle on every rank, for drawn N, M >= N and W <= min(F, I)",
        )

    times = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 4))
    few_weights = times.map(lambda drawn: Times(drawn[0], drawn[1], min(drawn)))
    judge.forall(st.builds(Drawn, st.integers(1, 6), st.integers(0, 8), few_weights), body, max_examples=15)


# -- DualPipe and DualPipeV --------------------------------------------------------------------------------------------


@claim("pipeline.bubble-growth.dualpipe", provides=["dualpipe"])
def test_idle_time_of_dualpipe_does_not_grow_with_m(subject: Subject, judge: Judge) -> None:
    _judge_growth(subject, judge, "dualpipe", OVERLAPPED, ranks=(2, 4, 6))


@claim("pipeline.bubble-growth.dualpipe", tier=Tier.CONTRACT, provides=["dualpipe"], alone=True)
def test_dualpipe_refuses_what_it_does_not_allow(subject: Subject, judge: Judge) -> None:
    sizes = [(3, 8), (4, 9), (4, 6), (0, 8), (4, 0)]
    judge_refused(
        subject, judge, [Asked("dualpipe", *size) for size in sizes], rule="N even, M even and M >= 2N, N at least 2"
    )


@claim("pipeline.bubble-growth.dualpipev", provides=["dualpipev"])
def test_idle_time_of_dualpipev_does_not_grow_with_m(subject: Subject, judge: Judge) -> None:
    _judge_growth(subject, judge, "dualpipev", OVERLAPPED)
    if (dualpipe := beside(subject, Asked("dualpipe", 4, 16))) is not None:
        own, other = map(timeline, (*legal(subject, judge, [Asked("dualpipev", 4, 16)]), dualpipe))
        judge.expect(
            mean(own.bubble()) / mean(other.bubble()),
            Fraction(3, 2),
            witness=Witness.SIMULATION,
            message="idle time of DualPipeV over that of DualPipe on 4 ranks, (N-1)/(N-2)",
        )


@claim("pipeline.bubble-growth.dualpipev", tier=Tier.CONTRACT, provides=["dualpipev"], alone=True)
def test_dualpipev_refuses_what_it_does_not_allow(subject: Subject, judge: Judge) -> None:
    sizes = [(4, 7), (2, 3), (0, 8), (4, 0)]
    judge_refused(subject, judge, [Asked("dualpipev", *size) for size in sizes], rule="N >= 1 and M >= 2N")
