"""Why ZeRO reduce-scatters: a rank gets its own part of the sum, for half the logical bytes of an all-reduce."""

from __future__ import annotations

from fractions import Fraction

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.collectives import programs
from conformance.collectives.costs import DIVISIBLE, ITEM_BYTES, shifts
from conformance.collectives.programs import CALL
from conformance.collectives.traffic import described, logical_bytes, of_call
from conformance.collectives.values import judge_parts
from conformance.verdict import Witness
from fixtures.draws import Case
from fixtures.world.per_rank import PerRank

SCATTERS = ("shard_gradients", "ring_reduce_scatter", "reduce_scatter")
T = DIVISIBLE * ITEM_BYTES


@claim("faq.why-reduce-scatter", provides=["|".join(SCATTERS)])
@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_a_rank_gets_its_part_for_half_the_bytes(subject: Subject, judge: Judge, name: str, world_size: int) -> None:
    subject.require(name)
    case = Case(world_size=world_size, shape=(12 * world_size,))
    program, more = (programs.sharded, ()) if name == "shard_gradients" else (programs.once, (name,))
    outcomes = subject.run(program, world_size, *more, PerRank(case.inputs()))
    judge_parts(judge, case, [value["result"] for value in outcomes.values], outcomes)
    _judge_bytes(subject, judge, name, world_size)


def _judge_bytes(subject: Subject, judge: Judge, name: str, world_size: int) -> None:
    """Logical bytes: what the operations of the trace have to move. What gloo makes of its own is told beside it."""
    outcomes = subject.run(programs.counted, world_size, name, DIVISIBLE, PerRank(shifts(world_size)))
    moved = sum((logical_bytes(of_call(outcome)) for outcome in outcomes), Fraction(0))
    half, whole = T * (world_size - 1), 2 * T * (world_size - 1)
    on_wire = [outcome.sent_bytes(CALL) for outcome in outcomes]
    data = {"logical_bytes": float(moved), "all_reduce_bytes": whole, "wire_bytes": on_wire}
    if moved != half:
        judge.violated(
            f"{name} moves {float(moved):,.0f} bytes on {world_size} ranks: {described(of_call(outcomes[0]))}",
            expected=f"T(N-1) = {half:,} over all ranks; an all-reduce moves 2T(N-1) = {whole:,}",
            observed=f"{float(moved):,.0f}",
            witness=Witness.TRACE,
            unit="bytes",
            data=data,
            outcomes=outcomes,
        )
    judge.holds(
        expected=f"T(N-1) = {half:,} over all ranks; an all-reduce moves 2T(N-1) = {whole:,}",
        observed=f"{float(moved):,.0f}",
        witness=Witness.TRACE,
        unit="bytes",
        message="each rank has its own part of the sum and nothing else, for half the logical bytes of an all-reduce",
        data=data,
    )
