"""A partitioner makes the costliest stage as cheap as any way to cut can."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.checks import Judge, Subject, claim
from conformance.strategies import cut_programs
from conformance.strategies.cuts import costs_of, fault_in, least_bottleneck, told
from conformance.verdict import Witness

Case = tuple[list[Any], int]
ROUNDING = 1e-9  # of an implementation that adds up in floats; drawn costs that differ do so by far more
UNLIKE: list[Case] = [
    ([0, 1, 1, 1, 1, 4, 1, 1, 4], 3),  # an embedding, small blocks, and two of four times their work
    ([1, 1, 1, 1, 1, 1, 9], 3),  # a loss head
    ([9, 1, 1, 1, 1, 1, 1], 3),
    ([4, 1, 1, 4, 1, 1, 4], 4),  # filled up to the mean, the last stage gets too much
    ([3, 3, 2, 2, 2], 2),
    ([1, 2, 3, 4, 5, 6, 7, 8, 9], 3),
]


def _judge_balance(subject: Subject, judge: Judge, costs: list[Any], num_stages: int) -> None:
    (stages,) = subject.run(cut_programs.cut, 1, costs, num_stages, bare=True, trace=False).values
    best = least_bottleneck(costs, num_stages)
    where = f"costs {costs} on {num_stages} stages"
    if fault := fault_in(stages, len(costs), num_stages):
        judge.violated(f"{where}: {fault}", expected=f"a costliest stage of {float(best):g}", observed=told(stages))
    found = costs_of(stages, costs)
    seen = ", ".join(f"{float(cost):g}" for cost in found)
    if max(found) > best * (1 + ROUNDING):
        judge.violated(
            f"{where}: the costliest stage could cost {float(best):g}",
            expected=f"at most {float(best):g}",
            observed=f"{float(max(found)):g}: layers {told(stages)} cost {seen}",
        )
    judge.holds(
        expected=f"a costliest stage of {float(best):g}",
        observed=f"layers {told(stages)} cost {seen}",
        witness=Witness.VALUE,
        message=where,
    )


@claim("resists.unbalanced-stages", provides=["partition"])
def test_the_costliest_stage_is_as_cheap_as_can_be_where_layers_are_unlike(subject: Subject, judge: Judge) -> None:
    for costs, num_stages in UNLIKE:
        _judge_balance(subject, judge, costs, num_stages)


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    cost = draw(st.sampled_from([st.integers(0, 9), st.integers(1, 200), st.floats(0, 10, width=16)]))
    costs = draw(st.lists(cost, min_size=1, max_size=12))
    return costs, draw(st.integers(1, len(costs)))


@claim("resists.unbalanced-stages", provides=["partition"], tier="contract")
def test_no_way_to_cut_has_a_cheaper_costliest_stage(subject: Subject, judge: Judge) -> None:
    judge.forall(_cases(), lambda case: _judge_balance(subject, judge, *case), max_examples=150)
