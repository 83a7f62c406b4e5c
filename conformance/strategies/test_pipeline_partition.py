"""A pipeline splits the model by layers: every layer in one stage, and every stage on the ranks that its kind says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.case import placement
from conformance.pipeline.judged import Asked, returned
from conformance.strategies import cut_programs
from conformance.strategies.cuts import fault_in, told
from conformance.verdict import Witness
from impls.words import number_of

Case = tuple[list[Any], int]
ALIKE = [(5, 3), (8, 4), (10, 4), (7, 2), (4, 4), (3, 1), (61, 16)]  # layers, stages
ODD: list[Case] = [
    ([100, 1, 1, 1, 1, 1], 3),
    ([1, 1, 1, 1, 1, 100], 3),
    ([0, 0, 0, 0, 1], 4),
    ([0, 0, 0, 0, 0], 3),
    ([5.5, 0.25, 3.0, 9.75, 0.5, 0.125, 7.0], 5),
]

SCHEDULES = {  # name in the contract, as it is asked for where it is executed
    "gpipe": "gpipe",
    "one_f_one_b": "1f1b",
    "interleaved_1f1b": "interleaved_1f1b",
    "zb_h1": "zb_h1",
    "zbv": "zbv",
    "dualpipe": "dualpipe",
    "dualpipev": "dualpipev",
}


def _judge_cut(subject: Subject, judge: Judge, costs: list[Any], num_stages: int) -> None:
    (stages,) = subject.run(cut_programs.cut, 1, costs, num_stages, bare=True, trace=False).values
    where = f"{number_of(len(costs), 'layer')} of costs {costs} on {number_of(num_stages, 'stage')}"
    if fault := fault_in(stages, len(costs), num_stages):
        judge.violated(
            f"{where}: {fault}",
            expected="contiguous stages in order, every layer in exactly one, none empty",
            observed=told(stages),
        )
    judge.holds(
        expected="every layer in exactly one stage, in order",
        observed=told(stages),
        witness=Witness.VALUE,
        message=where,
    )


@claim("strategies.pipeline.partition", provides=["partition"])
@pytest.mark.parametrize(("num_layers", "num_stages"), ALIKE)
def test_equal_layers_are_dealt_out_in_contiguous_stages(
    subject: Subject, judge: Judge, num_layers: int, num_stages: int
) -> None:
    _judge_cut(subject, judge, [1] * num_layers, num_stages)


@claim("strategies.pipeline.partition", provides=["partition"])
def test_layers_of_very_different_costs_leave_no_stage_empty(subject: Subject, judge: Judge) -> None:
    for costs, num_stages in ODD:
        _judge_cut(subject, judge, costs, num_stages)


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    cost = draw(st.sampled_from([st.integers(0, 9), st.integers(0, 1000), st.floats(0, 10, width=16)]))
    costs = draw(st.lists(cost, min_size=1, max_size=draw(st.sampled_from([6, 14, 80]))))
    return costs, draw(st.integers(1, len(costs)))


@claim("strategies.pipeline.partition", provides=["partition"], tier="contract")
def test_any_costs_give_contiguous_stages_of_all_layers(subject: Subject, judge: Judge) -> None:
    judge.forall(_cases(), lambda case: _judge_cut(subject, judge, *case), max_examples=100)


@claim("strategies.pipeline.partition", provides=["partition"], tier="contract", alone=True)
def test_what_cannot_be_cut_is_refused(subject: Subject, judge: Judge) -> None:
    cases: list[Case] = [([1, 1], 3), ([], 1), ([1, -1, 1], 2), ([3, 4, 5, -0.5], 1)]
    (found,) = subject.run(cut_programs.refused, 1, cases, bare=True, trace=False).values
    for (costs, num_stages), answer in zip(cases, found, strict=True):
        judge.expect(answer, True, message=f"ValueError for costs {costs} on {number_of(num_stages, 'stage')}")


@claim("strategies.pipeline.partition", provides=["|".join(SCHEDULES)], tier="contract")
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_rank_works_on_the_stages_that_are_its_own(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)
    num_ranks = 4
    asked = Asked(name, num_ranks, 2 * num_ranks)
    (schedule,) = returned(subject, judge, [asked])
    places = placement(SCHEDULES[name], num_ranks)
    own = [sorted({part.stage for action in actions for part in action.parts}) for actions in schedule]
    wanted = [places.stages_of(rank) for rank in range(num_ranks)]
    judge.expect(own, wanted, message=f"{asked}: the stages of each rank, by what it works on")
