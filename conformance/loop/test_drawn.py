"""Gradients become their mean for whatever parameters there are: shapes, frozen ones, bucket sizes, use by rank."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import strategies as st

from conformance.checks import Judge, Subject, claim
from conformance.loop import programs, single
from conformance.loop.judging import gradients_as, judge_all
from conformance.loop.programs import Values
from fixtures import models
from fixtures.world.per_rank import PerRank

STEPS = 2  # a wrapper may learn from its first
WRAPPED = ["DataParallel|average_gradients"]
ANYHOW = ["loop.construct-broadcast"]  # these gradients do not depend on what the parameters are
TINY_MB = 0.0001  # a bucket of 104 bytes: 26 floats


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """Parameters of these shapes; the first learns and is used on every rank, so that every rank has a backward."""

    shapes: list[list[int]]
    frozen: list[bool]
    unused: list[int]  # bit r of an entry: rank r does not use that parameter
    bucket_cap_mb: float | None

    def used_by(self, rank: int) -> list[bool]:
        """Which parameters take part in the forward pass of this rank."""
        return [not bits >> rank & 1 for bits in self.unused]


@st.composite
def cases(draw: st.DrawFn, *, least: int = 1, most_dims: int = 2, least_dims: int = 1, partly: bool = False) -> Case:
    """Up to six parameters; with ``partly`` each may be unused on any of the ranks."""
    shape = st.lists(st.integers(least, 7), min_size=least_dims, max_size=most_dims)
    shapes = draw(st.lists(shape, min_size=1, max_size=6))
    shapes[0] = shapes[0] if all(shapes[0]) else [3]  # the first has elements
    rest = len(shapes) - 1
    frozen = [False, *draw(st.lists(st.booleans(), min_size=rest, max_size=rest))]
    bits = st.integers(0, 255) if partly else st.just(0)
    unused = [0, *draw(st.lists(bits, min_size=rest, max_size=rest))]
    return Case(shapes, frozen, unused, draw(st.sampled_from([None, TINY_MB])))


def _expected(case: Case, step: int, world_size: int) -> Values:
    """The mean over ranks: each sends N times an integer, so that the mean is the sum of those integers."""
    weights = [models.coefficients(case.shapes, 100 * step + rank) for rank in range(world_size)]
    found: Values = {}
    for index, still in enumerate(case.frozen):
        present = [weights[rank][index] for rank in range(world_size) if case.used_by(rank)[index]]
        found[f"values.{index}"] = torch.stack(present).sum(0) if present and not still else None
    return found


def _judge(subject: Subject, judge: Judge, world_size: int, case: Case) -> None:
    used = PerRank([case.used_by(rank) for rank in range(world_size)])
    weights = single.coefficients(case.shapes, world_size, range(STEPS))
    reports = subject.run(
        programs.bag, world_size, case.shapes, case.frozen, used, weights, bucket_cap_mb=case.bucket_cap_mb
    ).values
    found = [
        (f"rank {rank}, step {step}", gradients_as(report[step], _expected(case, step, world_size)))
        for rank, report in enumerate(reports)
        for step in range(STEPS)
    ]
    judge_all(judge, found, "the gradients of drawn parameters")


@claim("loop.mean", provides=WRAPPED, despite=ANYHOW)
@pytest.mark.parametrize("world_size", [2, 3])
def test_gradients_of_drawn_parameters_are_the_mean(subject: Subject, judge: Judge, world_size: int) -> None:
    judge.forall(cases(), lambda case: _judge(subject, judge, world_size, case))


@claim("loop.mean", tier="contract", provides=WRAPPED, despite=ANYHOW)
@pytest.mark.parametrize("world_size", [2, 3])
def test_drawn_parameters_unused_on_drawn_ranks_count_as_zero(subject: Subject, judge: Judge, world_size: int) -> None:
    judge.forall(cases(partly=True), lambda case: _judge(subject, judge, world_size, case))


@claim("loop.mean", tier="exotic", provides=WRAPPED, despite=ANYHOW)
@pytest.mark.parametrize("world_size", [1, 3, 5, 8])
def test_drawn_parameters_with_no_elements_or_no_dimensions_have_the_mean(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    drawn = cases(least=0, least_dims=0, most_dims=3)
    judge.forall(drawn, lambda case: _judge(subject, judge, world_size, case), max_examples=8)
