"""A column-row pair has one all-reduce forward and one backward, not one for each product: told by bytes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.collectives.traffic import logical_bytes
from conformance.strategies import tensor_programs as programs
from conformance.strategies.tensor_case import Case
from conformance.strategies.tensor_judging import by_way, case_of
from conformance.verdict import Tier, Witness
from fixtures.world.outcome import Operation, Outcome, Outcomes

PAIRS = ("pair", "mlp", "attention", "whole-mlp", "whole-attention", "block")
PAIRS_IN = {"block": 2}  # of column-row pairs: an attention and an MLP
SHAPE = (4, 48)  # 2, 3 and 4 ranks share the sequence; activations are large beside biases and norms
SILENT = frozenset({"barrier", "new_group"})
NOTE_BYTES = 64  # sizes and the like


def ways(*names: str, tier: Tier = Tier.CORE) -> list[Any]:
    """Parameters for a check of these ways to provide a layer."""

    def mark(**how: Any) -> pytest.MarkDecorator:
        return claim("strategies.tensor.traffic", **how)

    return by_way(mark, names, tier)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """The operations of the two passes of one rank."""

    forward: tuple[Operation, ...]
    backward: tuple[Operation, ...]


def passes_of(outcome: Outcome) -> Passes:
    """Operations between the marks of each pass; notes of a few bytes left out."""
    at = {mark.name: mark.at_ns for mark in outcome.marks}

    def between(name: str) -> tuple[Operation, ...]:
        begin, end = at[f"{name}-begin"], at[f"{name}-end"]
        return tuple(
            op
            for op in outcome.operations
            if begin <= op.issued_ns <= end and op.kind not in SILENT and op.num_bytes > NOTE_BYTES
        )

    return Passes(forward=between("forward"), backward=between("backward"))


def told(operations: Sequence[Operation]) -> str:
    """Kinds and bytes, counted."""
    count = Counter((operation.kind, operation.num_bytes) for operation in operations if operation.kind != "recv")
    return ", ".join(f"{number} {kind} of {size:,} bytes" for (kind, size), number in count.items()) or "nothing"


def _observe(subject: Subject, judge: Judge, case: Case, world_size: int, depth: int) -> Outcomes:
    outcomes = subject.run(programs.traffic, world_size, case.fields(), depth)
    if case.way == "pair" and outcomes[0].value["out_width"] != case.width:
        judge.not_provided("its layers do not fit together in a pair")
    return outcomes


def _activation_bytes(case: Case, width: int) -> int:
    return 4 * width * case.shape[0] * case.shape[1]


def _judge_bytes(
    judge: Judge, outcomes: Outcomes, case: Case, world_size: int, forward: int, backward: int, extra: int = 0
) -> None:
    """`forward` and `backward` count all-reduces of T, the bytes of an activation, by what they have to send.

    `extra` gathers may come on top in the backward pass: an input that was let go is gathered once more.
    """
    size = _activation_bytes(case, case.width)
    share = Fraction(size * (world_size - 1), world_size)
    slack = 2 * outcomes[0].value["small_bytes"] * world_size
    for outcome in outcomes:
        found = passes_of(outcome)
        for name, operations, count, more in (
            ("forward", found.forward, forward, 0),
            ("backward", found.backward, backward, extra),
        ):
            moved = logical_bytes(operations)
            least = 0 if case.kind == "embedding" else 2 * count * share  # cut by its width it is gathered: half of it
            if not least <= moved <= (2 * count + more) * share + slack:
                judge.violated(
                    f"rank {outcome.rank}, {name} pass: {told(operations)}; that is {float(moved / (2 * share)):.2f} "
                    f"all-reduces of an activation",
                    expected=f"{count} of T = {size:,} bytes, or halves of it that send as much",
                    observed=told(operations),
                    witness=Witness.TRACE,
                    outcomes=outcomes,
                )
    last = passes_of(outcomes[0])
    judge.timeline(outcomes)
    judge.holds(
        expected=f"forward {forward}, backward {backward} all-reduces of T = {size:,} bytes: 2T(N-1)/N each",
        observed=f"forward {told(last.forward)}; backward {told(last.backward)}",
        witness=Witness.TRACE,
        message=f"forward {told(last.forward)}; backward {told(last.backward)}",
        examples=world_size,
    )


@pytest.mark.parametrize("way", ways(*PAIRS))
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_a_column_row_pair_is_reduced_once_forward_and_once_backward(
    subject: Subject, judge: Judge, way: str, world_size: int
) -> None:
    case = case_of(way, exact=False, shape=SHAPE)
    count = PAIRS_IN.get(way, 1)
    outcomes = _observe(subject, judge, case, world_size, 1)
    _judge_bytes(judge, outcomes, case, world_size, count, count)


@pytest.mark.parametrize("way", ways("pair", "mlp", "whole-mlp"))
def test_three_pairs_are_reduced_three_times(subject: Subject, judge: Judge, way: str) -> None:
    case = case_of(way, exact=False, shape=SHAPE)
    _judge_bytes(judge, _observe(subject, judge, case, 2, 3), case, 2, 3, 3)


@pytest.mark.parametrize("way", ways("row", "column", "embedding"))
def test_a_layer_that_stands_alone_is_reduced_in_one_direction(subject: Subject, judge: Judge, way: str) -> None:
    """A row-parallel one forward, a column-parallel one backward."""
    case = case_of(way, exact=False, shape=SHAPE)
    outcomes = _observe(subject, judge, case, 3, 1)
    if outcomes[0].value["out_width"] == case.inner and way == "column":
        judge.not_provided("its column-parallel layer always gathers its output")
    if way == "row" and outcomes[0].value["takes_whole"]:
        judge.not_provided("its row-parallel layer always takes the whole input")
    forward, backward = (0, 1) if way == "column" else (1, 0)
    _judge_bytes(judge, outcomes, case, 3, forward, backward)


@pytest.mark.parametrize("way", ways(*PAIRS, tier=Tier.CONTRACT))
@pytest.mark.parametrize("world_size", [2, 3])
def test_with_the_sequence_cut_a_gather_and_a_reduce_scatter_send_as_much(
    subject: Subject, judge: Judge, way: str, world_size: int
) -> None:
    case = case_of(way, exact=False, shape=SHAPE, sequence_parallel=True)
    count = PAIRS_IN.get(way, 1)
    outcomes = _observe(subject, judge, case, world_size, 1)
    _judge_bytes(judge, outcomes, case, world_size, count, count, extra=count)
