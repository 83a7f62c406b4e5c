"""GPipe's bubble, 1F1B's which is the same without latency, and what the order of 1F1B holds in memory."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from conformance.checks import Judge, Subject, claim
from conformance.expect import same
from conformance.pipeline.gantt import charts
from conformance.pipeline.idle import Drawn, Times, judge_idle, percent, timeline
from conformance.pipeline.judged import Asked, beside, judge_refused, legal
from conformance.verdict import Tier, Witness
from impls.reference.pipeline.actions import Schedule
from impls.reference.pipeline.counts import peak_activations
from impls.reference.pipeline.simulate import ShareOf

SIZES = [(1, 1), (1, 4), (2, 2), (2, 3), (3, 3), (3, 7), (4, 8), (5, 6)]
LARGE = [(4, 24), (10, 30)]  # M no power of two, and more ranks than the tables of papers have
FEW = [(2, 1), (3, 2), (4, 1), (4, 3), (8, 3)]  # fewer microbatches than ranks
TIMES = [Times(), Times(1, 2, 0), Times(3, 1, 1), Times(1, 3, 2)]
LATENCY = Fraction(1, 10)
NOT_ALLOWED = [(0, 4), (4, 0), (-1, 4), (4, -1)]
DRAWN = st.builds(
    Drawn, st.integers(1, 7), st.integers(0, 9), st.builds(Times, *[st.integers(1, 4)] * 2, st.integers(0, 4))
)


def _judge_all(subject: Subject, judge: Judge, name: str, sizes: list[tuple[int, int]]) -> None:
    asked = [Asked(name, *size) for size in sizes]
    schedules = legal(subject, judge, asked)
    for one, schedule in zip(asked, schedules, strict=True):
        for times in TIMES:
            judge_idle(judge, one, schedule, times)
    judge.holds(
        expected="(N-1)(F+B)",
        observed="(N-1)(F+B)",
        witness=Witness.SIMULATION,
        message=f"idle on every rank, exactly, for (N, M) in {sizes} and {len(TIMES)} sets of times",
        examples=len(sizes) * len(TIMES),
        data=charts(simulated=timeline(schedules[-1])),
    )


def _judge_drawn(subject: Subject, judge: Judge, name: str) -> None:
    def body(drawn: Drawn) -> None:
        asked = Asked(name, drawn.num_ranks, drawn.num_microbatches)
        (schedule,) = legal(subject, judge, [asked])
        judge_idle(judge, asked, schedule, drawn.times)
        judge.holds(
            expected="(N-1)(F+B)",
            observed="(N-1)(F+B)",
            witness=Witness.SIMULATION,
            message="idle on every rank, for drawn N, M >= N and times",
        )

    judge.forall(DRAWN, body, max_examples=15)


# -- GPipe -------------------------------------------------------------------------------------------------------------


@claim("pipeline.gpipe.bubble", provides=["gpipe"])
def test_gpipe_idles_as_long_as_n_minus_1_microbatches_take(subject: Subject, judge: Judge) -> None:
    _judge_all(subject, judge, "gpipe", SIZES)
    asked = [Asked("gpipe", 4, 8), Asked("gpipe", 4, 64)]
    for one, schedule, printed in zip(asked, legal(subject, judge, asked), ("27.3%", "4.5%"), strict=True):
        done = timeline(schedule)
        judge.that(
            same(percent(done.bubble_share()), printed),
            witness=Witness.SIMULATION,
            message=f"{one}: the idle share of total time; of the ideal time it is "
            f"{percent(done.bubble_share(ShareOf.IDEAL))}",
        )


@claim("pipeline.gpipe.bubble", provides=["gpipe"])
def test_gpipe_idles_so_for_drawn_sizes_and_times(subject: Subject, judge: Judge) -> None:
    _judge_drawn(subject, judge, "gpipe")


@claim("pipeline.gpipe.bubble", tier=Tier.CONTRACT, provides=["gpipe"])
def test_gpipe_does_so_with_few_microbatches(subject: Subject, judge: Judge) -> None:
    _judge_all(subject, judge, "gpipe", FEW)


@claim("pipeline.gpipe.bubble", tier=Tier.CONTRACT, provides=["gpipe"], alone=True)
def test_gpipe_refuses_what_it_does_not_allow(subject: Subject, judge: Judge) -> None:
    judge_refused(subject, judge, [Asked("gpipe", *size) for size in NOT_ALLOWED], rule="N >= 1 and M >= 1")


# -- 1F1B: the same bubble ---------------------------------------------------------------------------------------------


@claim("pipeline.1f1b.same-bubble", provides=["one_f_one_b"])
def test_1f1b_idles_as_long_as_gpipe(subject: Subject, judge: Judge) -> None:
    _judge_all(subject, judge, "one_f_one_b", [*SIZES, *LARGE])
    for size in [(2, 4), (3, 6), (4, 8), (4, 32)]:
        _judge_latency(subject, judge, *size)


@claim("pipeline.1f1b.same-bubble", provides=["one_f_one_b"])
def test_1f1b_idles_so_for_drawn_sizes_and_times(subject: Subject, judge: Judge) -> None:
    _judge_drawn(subject, judge, "one_f_one_b")


@claim("pipeline.1f1b.same-bubble", tier=Tier.CONTRACT, provides=["one_f_one_b"])
def test_1f1b_does_so_with_fewer_microbatches_than_ranks(subject: Subject, judge: Judge) -> None:
    _judge_all(subject, judge, "one_f_one_b", FEW)


@claim("pipeline.1f1b.same-bubble", tier=Tier.CONTRACT, provides=["one_f_one_b"], alone=True)
def test_1f1b_refuses_what_it_does_not_allow(subject: Subject, judge: Judge) -> None:
    judge_refused(subject, judge, [Asked("one_f_one_b", *size) for size in NOT_ALLOWED], rule="N >= 1 and M >= 1")


def _judge_latency(subject: Subject, judge: Judge, n: int, m: int) -> None:
    """What messages that take c cost: 2(N-1)c in GPipe, 2c((N-1)M/N + N-2) in the 1F1B that holds no more than it may.

    A 1F1B with more forwards ahead loses less, and memory is another claim.
    """
    (own,) = legal(subject, judge, [Asked("one_f_one_b", n, m)])
    lost = _lost(own)
    formula = 2 * LATENCY * (Fraction((n - 1) * m, n) + n - 2)
    told = f"N = {n}, M = {m}: messages that take c = {LATENCY} F cost 1F1B {lost}, 2c((N-1)M/N + N-2)"
    if peak_activations(own) == [min(m, n - rank) for rank in range(n)]:
        judge.that(same(lost, formula), witness=Witness.SIMULATION, message=told)
    if (gpipe := beside(subject, Asked("gpipe", n, m))) is not None:
        told = f"N = {n}, M = {m}: they cost GPipe {_lost(gpipe)}, 2(N-1)c, and 1F1B {lost}"
        judge.that(same(_lost(gpipe), 2 * (n - 1) * LATENCY), witness=Witness.SIMULATION, message=told)


def _lost(schedule: Schedule) -> Fraction:
    slow, quick = (timeline(schedule, Times(latency=latency)).makespan for latency in (LATENCY, 0))
    return Fraction(slow) - Fraction(quick)


# -- 1F1B: memory ------------------------------------------------------------------------------------------------------


def _judge_peaks(subject: Subject, judge: Judge, sizes: list[tuple[int, int]]) -> None:
    for n, m in sizes:
        (schedule,) = legal(subject, judge, [Asked("one_f_one_b", n, m)])
        peaks = [int(peak) for peak in peak_activations(schedule)]
        bounds = [min(m, n - rank) for rank in range(n)]
        for rank, (peak, bound) in enumerate(zip(peaks, bounds, strict=True)):
            if peak > bound:
                all_first = " All forwards come before the first backward: that is GPipe" if peak == m > bound else ""
                judge.violated(
                    f"one_f_one_b({n}, {m}): rank {rank} holds {peak} microbatches' activations at a time, and "
                    f"min(M, N-r) = {bound} is enough.{all_first}",
                    expected=f"at most {bounds} on ranks 0 to {n - 1}",
                    observed=str(peaks),
                    witness=Witness.SIMULATION,
                    unit="microbatches",
                )
    judge.holds(
        expected=f"at most {bounds} on ranks 0 to {n - 1}",
        observed=str(peaks),
        witness=Witness.SIMULATION,
        unit="microbatches",
        message=f"microbatches' activations held at a time, for (N, M) in {sizes}",
        examples=len(sizes),
    )


@claim("pipeline.1f1b.memory", provides=["one_f_one_b"])
def test_order_of_1f1b_holds_no_more_than_the_ranks_behind_need(subject: Subject, judge: Judge) -> None:
    gpipe = beside(subject, Asked("gpipe", 4, 8))
    if gpipe is not None and list(peak_activations(gpipe)) == [8] * 4:
        judge.holds(
            expected=[8] * 4,
            observed=[8] * 4,
            witness=Witness.SIMULATION,
            unit="microbatches",
            message="beside it GPipe holds all M = 8 on every rank",
        )
    _judge_peaks(subject, judge, [*SIZES, (8, 16), (4, 64), *LARGE])


@claim("pipeline.1f1b.memory", tier=Tier.CONTRACT, provides=["one_f_one_b"])
def test_order_of_1f1b_holds_m_where_there_are_fewer_microbatches_than_ranks(subject: Subject, judge: Judge) -> None:
    _judge_peaks(subject, judge, FEW)
