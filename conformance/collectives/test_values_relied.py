"""What users of collectives rely on without saying so: large tensors, overflow, NaN, and groups of some ranks."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import expect
from conformance.checks import Judge, Subject, claim, optional
from conformance.collectives import group_programs, programs
from conformance.collectives.values import judge_copies, judge_parts, judge_sums
from conformance.verdict import Tier
from fixtures.draws import Case, total_of
from fixtures.world.outcome import Outcomes
from fixtures.world.per_rank import PerRank

SUMS = ("ring_allreduce", "tree_allreduce", "all_reduce")
GATHERS = ("ring_allgather", "all_gather")
SCATTERS = ("ring_reduce_scatter", "reduce_scatter")
BROADCASTS = ("tree_broadcast", "broadcast")
LARGE = Case(world_size=3, shape=(100_003,), src=1)  # larger than what the other checks send, and not divisible
GROUPS = [[0, 2], [1, 3]]
NOT_FINITE = ((0, math.nan), (1, math.inf), (2, -math.inf))  # element and value; rank 1 has them

sums = claim("collectives.values.allreduce", provides=["|".join(SUMS)], tier=Tier.CONTRACT)
gathers = claim("collectives.values.allgather", provides=["|".join(GATHERS)], tier=Tier.CONTRACT)
scatters = claim("collectives.values.reduce-scatter", provides=["|".join(SCATTERS)], tier=Tier.CONTRACT)
broadcasts = claim("collectives.values.broadcast", provides=["|".join(BROADCASTS)], tier=Tier.CONTRACT)
# Those over a mesh know no group.
group_sums = claim("collectives.values.allreduce", provides=["all_reduce"], tier=Tier.CONTRACT)
group_gathers = claim("collectives.values.allgather", provides=["all_gather"], tier=Tier.CONTRACT)
group_scatters = claim("collectives.values.reduce-scatter", provides=["reduce_scatter"], tier=Tier.CONTRACT)


def _once(subject: Subject, name: str, case: Case, **more: Any) -> tuple[list[Tensor], Outcomes]:
    subject.require(name)
    outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()), **more)
    return [value["result"] for value in outcomes.values], outcomes


@sums
@pytest.mark.parametrize("name", SUMS)
def test_every_element_of_a_large_sum_is_right(subject: Subject, judge: Judge, name: str) -> None:
    judge_sums(judge, LARGE, *_once(subject, name, LARGE), more_roundings=subject.more_roundings)


@gathers
@pytest.mark.parametrize("name", GATHERS)
def test_every_element_of_large_tensors_is_gathered(subject: Subject, judge: Judge, name: str) -> None:
    results, outcomes = _once(subject, name, LARGE)
    judge_copies(
        judge,
        torch.cat(LARGE.inputs()),
        results,
        outcomes,
        what="the ranks' tensors",
        case=dataclasses.replace(LARGE, src=0),
    )


@scatters
@pytest.mark.parametrize("name", SCATTERS)
def test_every_element_of_a_large_scattered_sum_is_right(subject: Subject, judge: Judge, name: str) -> None:
    judge_parts(judge, LARGE, *_once(subject, name, LARGE), more_roundings=subject.more_roundings)


@broadcasts
@pytest.mark.parametrize("name", BROADCASTS)
def test_every_element_of_a_large_tensor_is_broadcast(subject: Subject, judge: Judge, name: str) -> None:
    results, outcomes = _once(subject, name, LARGE, src=LARGE.src)
    judge_copies(judge, LARGE.inputs()[LARGE.src], results, outcomes, what="the root's tensor", case=LARGE)


@sums
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_integers_wrap_around_as_those_of_torch_do(
    subject: Subject, judge: Judge, name: str, dtype: torch.dtype
) -> None:
    subject.require(name)
    limits = torch.iinfo(dtype)
    inputs = [torch.tensor([limits.max, limits.min, limits.max - rank, 7], dtype=dtype) for rank in range(3)]
    outcomes = subject.run(programs.once, 3, name, PerRank(inputs))
    _judge_on_all(judge, [value["result"] for value in outcomes.values], total_of(inputs), outcomes)


@sums
@pytest.mark.parametrize("name", SUMS)
def test_what_is_not_finite_on_one_rank_is_not_finite_in_the_sum(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)
    inputs = [torch.arange(5.0) + rank for rank in range(3)]
    for element, value in NOT_FINITE:
        inputs[1][element] = value
    outcomes = subject.run(programs.once, 3, name, PerRank(inputs))
    results = [_with_one_nan(value["result"]) for value in outcomes.values]
    _judge_on_all(judge, results, _with_one_nan(total_of(inputs)), outcomes)


def _with_one_nan(tensor: Tensor) -> Tensor:
    """NaN has many bit patterns, and any of them is right."""
    return torch.where(tensor.isnan(), math.nan, tensor)


def _judge_on_all(judge: Judge, results: list[Tensor], expected: Tensor, outcomes: Outcomes) -> None:
    for rank, result in enumerate(results):
        judge.that(expect.same_bits(result, expected, f"rank {rank}"), message="the sum over ranks", outcomes=outcomes)


def _in_groups(subject: Subject, judge: Judge, name: str, case: Case) -> list[Tensor]:
    """The result of every rank, where each of the groups has called by itself."""
    values = subject.run(group_programs.in_groups, case.world_size, name, GROUPS, PerRank(case.inputs())).values
    if not all(value["takes_group"] for value in values):
        judge.not_provided(f"{subject.name}'s {name} does not take a group")
    return [value["result"] for value in values]


def _judge_groups(judge: Judge, results: list[Tensor], expected: list[Tensor], what: str) -> None:
    """``expected`` is what each group has in common."""
    for ranks, wanted in zip(GROUPS, expected, strict=True):
        for rank in ranks:
            comparison = expect.same_bits(results[rank], wanted, f"rank {rank} in the group {ranks}")
            judge.that(comparison, message=what)


@group_sums
@optional("all_reduce.group")
def test_sum_is_over_the_ranks_of_the_group_only(subject: Subject, judge: Judge) -> None:
    case = Case(world_size=4, shape=(9,))
    expected = [total_of([case.inputs()[rank] for rank in ranks]) for ranks in GROUPS]
    _judge_groups(judge, _in_groups(subject, judge, "all_reduce", case), expected, "the sum over a group")


@group_gathers
@optional("all_gather.group")
def test_tensors_of_the_group_only_are_gathered(subject: Subject, judge: Judge) -> None:
    case = Case(world_size=4, shape=(9,))
    expected = [torch.cat([case.inputs()[rank] for rank in ranks]) for ranks in GROUPS]
    _judge_groups(judge, _in_groups(subject, judge, "all_gather", case), expected, "the tensors of a group")


@group_scatters
@optional("reduce_scatter.group")
def test_sum_is_scattered_over_the_ranks_of_the_group_only(subject: Subject, judge: Judge) -> None:
    case = Case(world_size=4, shape=(8,))
    results = _in_groups(subject, judge, "reduce_scatter", case)
    for ranks in GROUPS:
        joined = torch.cat([results[rank] for rank in ranks])
        expected = total_of([case.inputs()[rank] for rank in ranks])
        judge.that(expect.same_bits(joined, expected, f"the parts in {ranks}"), message="the sum over a group")
