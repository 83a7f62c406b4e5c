"""All-gather, reduce-scatter and broadcast, in each spelling that an implementation provides."""

from __future__ import annotations

import pytest
import torch

from conformance.checks import Judge, Subject, claim
from conformance.collectives import programs
from conformance.collectives.sweep import sweep
from conformance.collectives.values import judge_copies, judge_memory, judge_parts
from conformance.verdict import Tier
from fixtures import draws
from fixtures.draws import Case
from fixtures.world.outcome import Outcomes
from fixtures.world.per_rank import PerRank

GATHERS = ("ring_allgather", "all_gather")
SCATTERS = ("ring_reduce_scatter", "reduce_scatter")
BROADCASTS = ("tree_broadcast", "broadcast")

every_gather = pytest.mark.parametrize("name", GATHERS)
every_scatter = pytest.mark.parametrize("name", SCATTERS)
every_broadcast = pytest.mark.parametrize("name", BROADCASTS)


def _results(outcomes: Outcomes) -> list[torch.Tensor]:
    return [value["result"] for value in outcomes.values]


def _memories(outcomes: Outcomes) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(value["memory"], value["result"]) for value in outcomes.values]


def _gather(subject: Subject, judge: Judge, name: str, case: Case) -> Outcomes:
    outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()), case.layout)
    expected = torch.cat([tensor.flatten() for tensor in case.inputs()])
    what = "the ranks' tensors in rank order"
    judge_copies(judge, expected, _results(outcomes), outcomes, what=what, case=case)
    return outcomes


@claim("collectives.values.allgather", provides=["|".join(GATHERS)])
@every_gather
def test_every_rank_gets_all_tensors_in_rank_order(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        _gather(subject, judge, name, case)

    sweep(judge, draws.plain_table(2, 3, 4), draws.plain_cases(2, 3, 4), examine, max_examples=20)


@claim("collectives.values.allgather", provides=["|".join(GATHERS)], tier=Tier.CONTRACT)
@every_gather
def test_a_gather_leaves_its_input_alone(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        outcomes = _gather(subject, judge, name, case)
        judge_memory(judge, case, _memories(outcomes), outcomes, in_place=False)

    sweep(judge, draws.small_table(1, 2, 3, 4), draws.small_cases(2, 3, 4, 1), examine, max_examples=10)


@claim("collectives.values.allgather", provides=["|".join(GATHERS)], tier=Tier.CONTRACT)
@every_gather
def test_no_rank_has_the_whole_before_the_last_has_come(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)
    case = Case(world_size=3, shape=(2000,))
    expected = torch.cat(case.inputs())
    for late_rank in range(3):
        outcomes = subject.run(programs.late, 3, name, PerRank(case.inputs()), late_rank)
        what = "the ranks' tensors in rank order"
        judge_copies(judge, expected, outcomes.values, outcomes, what=what, case=case)


@claim("collectives.values.allgather", provides=["|".join(GATHERS)], tier=Tier.EXOTIC)
@every_gather
def test_gather_of_any_dtype_shape_and_world_size(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        outcomes = _gather(subject, judge, name, case)
        judge_memory(judge, case, _memories(outcomes), outcomes, in_place=False)

    sweep(judge, draws.any_table(), draws.any_cases(), examine, max_examples=25)


@claim("collectives.values.reduce-scatter", provides=["|".join(SCATTERS)])
@every_scatter
def test_rank_r_gets_chunk_r_of_the_sum(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()))
        judge_parts(judge, case, _results(outcomes), outcomes, more_roundings=subject.more_roundings)

    sweep(judge, draws.plain_table(2, 3, 4), draws.plain_cases(2, 3, 4), examine, max_examples=20)


@claim("collectives.values.reduce-scatter", provides=["|".join(SCATTERS)], tier=Tier.CONTRACT)
@every_scatter
def test_a_reduce_scatter_leaves_its_input_alone(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()))
        judge_parts(judge, case, _results(outcomes), outcomes, more_roundings=subject.more_roundings)
        judge_memory(judge, case, _memories(outcomes), outcomes, in_place=False)

    sweep(judge, draws.small_table(1, 2, 3, 4), draws.small_cases(2, 3, 4, 1), examine, max_examples=10)


@claim("collectives.values.reduce-scatter", provides=["|".join(SCATTERS)], tier=Tier.CONTRACT)
@every_scatter
def test_no_rank_has_its_chunk_before_the_last_has_come(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)
    case = Case(world_size=3, shape=(3000,))
    for late_rank in range(3):
        outcomes = subject.run(programs.late, 3, name, PerRank(case.inputs()), late_rank)
        judge_parts(judge, case, outcomes.values, outcomes, more_roundings=subject.more_roundings)


@claim("collectives.values.reduce-scatter", provides=["|".join(SCATTERS)], tier=Tier.EXOTIC)
@every_scatter
def test_reduce_scatter_of_any_dtype_shape_and_world_size(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()), case.layout)
        judge_parts(judge, case, _results(outcomes), outcomes, more_roundings=subject.more_roundings)
        judge_memory(judge, case, _memories(outcomes), outcomes, in_place=False)

    sweep(judge, draws.any_table(), draws.any_cases(), examine, max_examples=25)


def _broadcast(subject: Subject, judge: Judge, name: str, case: Case) -> None:
    outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()), case.layout, case.src)
    expected = case.inputs()[case.src]
    judge_copies(judge, expected, _results(outcomes), outcomes, what="the root's tensor", case=case)
    judge_memory(judge, case, _memories(outcomes), outcomes, in_place=True, untouched_rank=case.src)


@claim("collectives.values.broadcast", provides=["|".join(BROADCASTS)])
@every_broadcast
def test_every_rank_gets_the_tensor_of_any_root(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)
    roots = [Case(world_size=n, shape=(5,), src=src, seed=src) for n in (2, 3, 4) for src in range(n)]

    def examine(case: Case) -> None:
        _broadcast(subject, judge, name, case)

    sweep(judge, roots, draws.plain_cases(2, 3, 4), examine, max_examples=20)


@claim("collectives.values.broadcast", provides=["|".join(BROADCASTS)], tier=Tier.CONTRACT)
@every_broadcast
@pytest.mark.parametrize("late_rank", [0, 1, 2])
def test_no_rank_has_the_tensor_before_the_root_has_come(
    subject: Subject, judge: Judge, name: str, late_rank: int
) -> None:
    subject.require(name)
    case = Case(world_size=3, shape=(3000,), src=late_rank)
    outcomes = subject.run(programs.late, 3, name, PerRank(case.inputs()), late_rank, src=case.src)
    expected = case.inputs()[case.src]
    judge_copies(judge, expected, outcomes.values, outcomes, what="the root's tensor", case=case)


@claim("collectives.values.broadcast", provides=["|".join(BROADCASTS)], tier=Tier.EXOTIC)
@every_broadcast
def test_broadcast_of_any_dtype_shape_root_and_world_size(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        _broadcast(subject, judge, name, case)

    sweep(judge, draws.any_table(), draws.any_cases(), examine, max_examples=25)
