"""All-reduce, in each spelling that an implementation provides: the sum on every rank, whatever is drawn."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.collectives import programs
from conformance.collectives.sweep import sweep
from conformance.collectives.values import judge_memory, judge_sums
from conformance.verdict import Tier
from fixtures import draws
from fixtures.draws import Case
from fixtures.world.per_rank import PerRank

NAMES = ("ring_allreduce", "tree_allreduce", "all_reduce")
ANY = ["|".join(NAMES)]

every_spelling = pytest.mark.parametrize("name", NAMES)


@claim("collectives.values.allreduce", provides=ANY)
@every_spelling
def test_every_rank_gets_the_sum(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()))
        judge_sums(
            judge, case, [value["result"] for value in outcomes.values], outcomes, more_roundings=subject.more_roundings
        )

    sweep(judge, draws.plain_table(2, 3, 4), draws.plain_cases(2, 3, 4), examine, max_examples=20)


@claim("collectives.values.allreduce", provides=ANY, tier=Tier.CONTRACT)
@every_spelling
def test_fewer_elements_than_ranks(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()))
        judge_sums(
            judge, case, [value["result"] for value in outcomes.values], outcomes, more_roundings=subject.more_roundings
        )

    sweep(judge, draws.small_table(1, 2, 3, 4), draws.small_cases(2, 3, 4, 1), examine, max_examples=10)


@claim("collectives.values.allreduce", provides=ANY, tier=Tier.CONTRACT)
@every_spelling
def test_the_input_is_left_alone_or_becomes_the_result(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()))
        values = [(value["memory"], value["result"]) for value in outcomes.values]
        judge_memory(judge, case, values, outcomes, in_place=True)

    sweep(judge, draws.plain_table(2, 3), draws.plain_cases(2, 3, 4), examine, max_examples=10)


@claim("collectives.values.allreduce", provides=ANY, tier=Tier.CONTRACT)
@every_spelling
@pytest.mark.parametrize("world_size", [2, 3])
def test_no_rank_has_a_result_before_the_last_has_come(
    subject: Subject, judge: Judge, name: str, world_size: int
) -> None:
    subject.require(name)
    case = Case(world_size=world_size, shape=(5000,))
    for late_rank in range(world_size):
        outcomes = subject.run(programs.late, world_size, name, PerRank(case.inputs()), late_rank)
        judge_sums(judge, case, outcomes.values, outcomes, more_roundings=subject.more_roundings)


@claim("collectives.values.allreduce", provides=ANY, tier=Tier.CONTRACT)
@every_spelling
@pytest.mark.parametrize("world_size", [3, 4])
def test_a_second_call_does_not_disturb_the_first(subject: Subject, judge: Judge, name: str, world_size: int) -> None:
    subject.require(name)
    cases = [Case(world_size=world_size, shape=(1001,), seed=seed) for seed in (1, 2)]
    outcomes = subject.run(programs.twice, world_size, name, *(PerRank(case.inputs()) for case in cases))
    for position, case in enumerate(cases):
        judge_sums(
            judge, case, [value[position] for value in outcomes.values], outcomes, more_roundings=subject.more_roundings
        )


@claim("collectives.values.allreduce", provides=ANY, tier=Tier.EXOTIC)
@every_spelling
def test_any_dtype_shape_and_world_size(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)

    def examine(case: Case) -> None:
        outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()), case.layout)
        judge_sums(
            judge, case, [value["result"] for value in outcomes.values], outcomes, more_roundings=subject.more_roundings
        )
        values = [(value["memory"], value["result"]) for value in outcomes.values]
        judge_memory(judge, case, values, outcomes, in_place=True)

    sweep(judge, draws.any_table(), draws.any_cases(), examine, max_examples=30)
