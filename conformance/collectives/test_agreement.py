"""After an all-reduce all ranks hold the same bits, also of sums that depend on the order of addition."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.collectives import programs
from conformance.collectives.sweep import sweep
from conformance.verdict import Tier
from fixtures import draws
from fixtures.draws import Case
from fixtures.world.per_rank import PerRank

NAMES = ("ring_allreduce", "tree_allreduce", "all_reduce")
ANY = ["|".join(NAMES)]

every_spelling = pytest.mark.parametrize("name", NAMES)


def _agree(subject: Subject, judge: Judge, name: str, case: Case) -> None:
    outcomes = subject.run(programs.once, case.world_size, name, PerRank(case.inputs()))
    results = [value["result"] for value in outcomes.values]
    comparison = expect.ranks_agree(results, f"the result of {dataclasses.replace(case, src=0)}")  # it has no root
    judge.that(comparison, message="sums that depend on the order of addition", outcomes=outcomes)


def _depends_on_order(case: Case) -> bool:
    """Whether adding the inputs from the other end gives other bits: else agreement would say nothing."""
    inputs = case.inputs()
    forwards, backwards = inputs[0], inputs[-1]
    for tensor in inputs[1:]:
        forwards = forwards + tensor
    for tensor in reversed(inputs[:-1]):
        backwards = backwards + tensor
    return not torch.equal(forwards, backwards)


@claim("collectives.agreement", provides=ANY)
@every_spelling
@pytest.mark.parametrize("world_size", [3, 4])
def test_all_ranks_hold_the_same_bits(subject: Subject, judge: Judge, name: str, world_size: int) -> None:
    subject.require(name)
    for seed in range(4):
        case = Case(world_size=world_size, shape=(257,), values="real", seed=seed)
        assert _depends_on_order(case)
        _agree(subject, judge, name, case)


@claim("collectives.agreement", provides=ANY, tier=Tier.EXOTIC)
@every_spelling
def test_all_ranks_hold_the_same_bits_of_any_dtype(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)
    table = [
        Case(world_size=world_size, shape=(41,), dtype=dtype, values="real", seed=world_size)
        for dtype in draws.REAL_DTYPES
        for world_size in (3, 5, 8)
    ]

    def examine(case: Case) -> None:
        _agree(subject, judge, name, case)

    sweep(judge, table, draws.any_cases(3, 4, 5, 8, dtypes=draws.REAL_DTYPES), examine, max_examples=15)
