"""The two calls of ZeRO-1: reduce_scatter for the gradient shard, all_gather to bring the parameters back."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from conformance.checks import Judge, Subject, claim
from conformance.collectives import programs
from conformance.collectives.sweep import sweep
from conformance.collectives.traffic import logical_bytes, of_call
from conformance.collectives.values import judge_copies, judge_memory, judge_parts
from conformance.verdict import Tier, Witness
from fixtures import draws
from fixtures.draws import Case
from fixtures.world.outcome import Outcomes
from fixtures.world.per_rank import PerRank


def _shard(subject: Subject, judge: Judge, case: Case) -> Outcomes:
    outcomes = subject.run(programs.sharded, case.world_size, PerRank(case.inputs()))
    judge_parts(judge, case, [value["result"] for value in outcomes.values], outcomes)
    return outcomes


@claim("calls.reduce-scatter", provides=["shard_gradients"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_each_rank_gets_the_summed_gradient_of_its_own_part(subject: Subject, judge: Judge, world_size: int) -> None:
    for numel in (12, 60):  # both sizes divide it
        _shard(subject, judge, Case(world_size=world_size, shape=(numel,), seed=numel))


@claim("calls.reduce-scatter", provides=["shard_gradients"], tier=Tier.CONTRACT)
def test_gradients_of_any_length_are_sharded(subject: Subject, judge: Judge) -> None:
    def examine(case: Case) -> None:
        outcomes = _shard(subject, judge, case)
        values = [(value["memory"], value["result"]) for value in outcomes.values]
        judge_memory(judge, case, values, outcomes, in_place=False)

    sweep(judge, draws.plain_table(2, 3), draws.plain_cases(2, 3, 4), examine, max_examples=15)


@claim("calls.reduce-scatter", provides=["shard_gradients"], tier=Tier.EXOTIC)
def test_gradients_of_any_dtype_are_sharded(subject: Subject, judge: Judge) -> None:
    def examine(case: Case) -> None:
        _shard(subject, judge, case)

    dtypes = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
    table = [case for case in draws.any_table() if case.dtype in dtypes]
    sweep(judge, table, draws.any_cases(dtypes=dtypes), examine, max_examples=10)


def _gather(subject: Subject, judge: Judge, case: Case, dtype: torch.dtype) -> Outcomes:
    shards = case.inputs()
    outcomes = subject.run(programs.gathered, case.world_size, PerRank(shards), dtype)
    expected = torch.cat([shard.flatten().to(dtype) for shard in shards])
    results = [value["result"] for value in outcomes.values]
    judge_copies(judge, expected, results, outcomes, what="the parameters in their own dtype", case=case)
    return outcomes


def _moved(outcomes: Outcomes) -> Fraction:
    return sum((logical_bytes(of_call(outcome)) for outcome in outcomes), Fraction(0))


@claim("calls.all-gather", provides=["gather_parameters"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_parameters_come_back_whole_on_every_rank(subject: Subject, judge: Judge, world_size: int) -> None:
    for values in ("small", "real"):
        case = Case(world_size=world_size, shape=(37,), values=values)
        _gather(subject, judge, case, torch.float32)
        _gather(subject, judge, case, torch.bfloat16)


@claim("calls.all-gather", provides=["gather_parameters"])
@pytest.mark.parametrize("world_size", [2, 4])
def test_the_master_is_cast_before_it_travels(subject: Subject, judge: Judge, world_size: int) -> None:
    case = Case(world_size=world_size, shape=(1000,))
    whole = case.numel * world_size  # parameters
    expected = whole * 2 * (world_size - 1)  # 16 bits each, to every other rank
    moved = _moved(_gather(subject, judge, case, torch.bfloat16))
    uncast = _moved(_gather(subject, judge, case, torch.float32))
    data = {"cast_bytes": float(moved), "uncast_bytes": float(uncast)}
    if moved != expected:
        judge.violated(
            f"{float(moved):,.0f} bytes travel for {whole} parameters of 16 bits on {world_size} ranks",
            expected=f"T(N-1) = {expected:,} over all ranks, T in the parameters' dtype",
            observed=f"{float(moved):,.0f}",
            witness=Witness.TRACE,
            unit="bytes",
            data=data,
        )
    judge.holds(
        expected=f"T(N-1) = {expected:,} over all ranks",
        observed=f"{float(moved):,.0f}; without the cast, as float32: {float(uncast):,.0f}",
        witness=Witness.TRACE,
        unit="bytes",
        message=f"cast before the wire; a master that travels as float32 moves {float(uncast / moved):g} times",
        data=data,
    )


@claim("calls.all-gather", provides=["gather_parameters"], tier=Tier.EXOTIC)
def test_shards_of_any_size_come_back(subject: Subject, judge: Judge) -> None:
    def examine(case: Case) -> None:
        _gather(subject, judge, case, torch.bfloat16)
        _gather(subject, judge, case, torch.float16)

    judge.forall(draws.any_cases(dtypes=[torch.float32]), examine, max_examples=15)
