"""Judging what a call costs: messages, bytes and steps of every rank, from the trace, and the wire set against it."""

from __future__ import annotations

import dataclasses
from typing import NoReturn

import torch

from conformance.checks import Judge, Subject
from conformance.collectives import programs, traffic
from conformance.collectives.programs import CALL
from conformance.collectives.steps import Order, Unmatched, num_rounds, num_steps
from conformance.collectives.traffic import Sent
from conformance.expect import same_bits
from conformance.verdict import Witness
from fixtures.witness.compare import in_window, reconcile
from fixtures.world.outcome import Operation, Outcomes
from fixtures.world.per_rank import PerRank
from impls.words import number_of

DIVISIBLE = 33_600  # elements: a multiple of 1 to 8, and 131 KiB of float32, beside which gloo's preambles are small
ITEM_BYTES = torch.float32.itemsize


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """One counted call: what every rank sent. Every send of every rank can be attributed, else the check has ended."""

    name: str
    world_size: int
    numel: int
    outcomes: Outcomes
    sent: tuple[Sent, ...]
    empty_tensors: int

    @property
    def input_bytes(self) -> int:
        """Bytes of one rank's input."""
        return self.numel * ITEM_BYTES

    @property
    def by_rank(self) -> list[int]:
        """Bytes that each rank sent."""
        return [sent.num_bytes for sent in self.sent]

    @property
    def longest_chain(self) -> int:
        """Steps of the call; a barrier of the implementation's own counts with its ceil(log2 N) rounds."""
        return self._steps(Order.AS_ISSUED)

    @property
    def half_steps(self) -> int:
        """Rounds of a step in which some ranks receive before they send: 0 where that does not explain the chain.

        Links that carry one message at a time need 2 on a ring of even length and 3 on one of odd length, where two
        neighbours do the same; whoever takes more lets ranks wait that could have sent.
        """
        rounds = num_rounds(self._operations, empty_tensors=self.empty_tensors)
        return rounds if rounds <= 2 + self.world_size % 2 else 0

    @property
    def steps_in_halves(self) -> int:
        """Steps of the call where a rank's own order inside of a step, to send or to receive first, is left out."""
        return self._steps(Order.WITHIN_A_STEP)

    def rounds(self, expected: int) -> int:
        """Of a step, where the call takes as many steps as expected and each has several rounds; else 0."""
        return self.half_steps if self.longest_chain > expected == self.steps_in_halves else 0

    def _steps(self, order: Order) -> int:
        barriers = max(sent.barriers for sent in self.sent)
        steps = num_steps(self._operations, empty_tensors=self.empty_tensors, order=order)
        return steps + barriers * log2_ceil(self.world_size)

    @property
    def _operations(self) -> list[list[Operation]]:
        return [traffic.of_call(outcome) for outcome in self.outcomes]


def log2_ceil(world_size: int) -> int:
    """ceil(log2 N)."""
    return (world_size - 1).bit_length()


def count(
    subject: Subject, judge: Judge, name: str, world_size: int, numel: int = DIVISIBLE, *, empty_tensors: int = 0
) -> Count:
    """Call ``name`` once with ``numel`` floats on each rank; not-provided when the library does it."""
    outcomes = subject.run(programs.counted, world_size, name, numel, PerRank(shifts(world_size)))
    sent = tuple(traffic.sent(traffic.of_call(o), empty_tensors=empty_tensors) for o in outcomes)
    for rank, what in enumerate(sent):
        if what.collectives:
            judge.not_provided(
                f"{name} leaves the work to the library: on rank {rank} the trace shows "
                f"{traffic.described(what.collectives)}. Its result is judged; it has no messages of its own to count"
            )
    _judge_result(judge, name, numel, outcomes)
    return Count(
        name=name, world_size=world_size, numel=numel, outcomes=outcomes, sent=sent, empty_tensors=empty_tensors
    )


def shifts(world_size: int) -> list[int]:
    """By which each rank's pattern is another one: told to that rank alone."""
    return [3 * rank % 7 for rank in range(world_size)]


def patterns(numel: int, world_size: int) -> list[torch.Tensor]:
    """The input of each rank."""
    return [programs.pattern(numel, shift) for shift in shifts(world_size)]


def _judge_result(judge: Judge, name: str, numel: int, outcomes: Outcomes) -> None:
    """Messages count for something only if the call that sent them did its work."""
    inputs = patterns(numel, len(outcomes))
    results = list(outcomes.values)
    if name.endswith("allgather"):
        expected = torch.cat(inputs)
    else:
        expected = torch.stack(inputs).sum(0)
        if not name.endswith("allreduce"):  # each rank has its part, and the last ones padding
            results = [torch.cat(results)[:numel]]
    for rank, result in enumerate(results):
        comparison = same_bits(result, expected, f"rank {rank}")
        if not comparison.matches:
            judge.that(comparison, message=f"the result of the call to {name} that was counted", outcomes=outcomes)


def judge_equal_bytes(judge: Judge, counted: Count, formula: str, expected: int) -> None:
    """Every rank sent exactly this much, by the trace."""
    for rank, sent in enumerate(counted.sent):
        if sent.num_bytes != expected:
            _violated_bytes(judge, counted, rank, f"{formula} = {expected:,}")
    judge.holds(
        expected=f"{formula} = {expected:,} on each of {number_of(counted.world_size, 'rank')}",
        observed=f"{max(counted.by_rank, default=0):,}",
        witness=Witness.TRACE,
        unit="bytes",
        message=f"each rank sends {formula}",
    )


def _violated_bytes(judge: Judge, counted: Count, rank: int, expected: str) -> NoReturn:
    sent = counted.sent[rank]
    guise = f", {len(sent.lone_headers)} of them headers without a payload" if sent.lone_headers else ""
    judge.violated(
        f"rank {rank} of {counted.world_size} sent {sent.num_bytes:,} bytes in "
        f"{number_of(len(sent.messages), 'message')}{guise} "
        f"({traffic.described(sent.messages)}) for {counted.input_bytes:,} bytes of input",
        expected=expected,
        observed=f"{sent.num_bytes:,}",
        witness=Witness.TRACE,
        unit="bytes",
        outcomes=counted.outcomes,
    )


def judge_chunks(judge: Judge, counted: Count, passes: int) -> None:
    """A ring of ``passes`` times N-1 steps over any number of elements: no rank sends more than that many largest
    chunks, and all together send the tensor that often, padding of up to N-1 elements told apart.
    """
    others = passes * (counted.world_size - 1)
    largest = -(-counted.numel // counted.world_size) * ITEM_BYTES
    for rank, sent in enumerate(counted.sent):
        if sent.num_bytes > others * largest:
            _violated_bytes(judge, counted, rank, f"at most {others} chunks of {largest:,} = {others * largest:,}")
    total, needed = sum(counted.by_rank), others * counted.input_bytes
    padding = 0 if others == 0 else (total - needed) / others / ITEM_BYTES  # elements
    sums = f"{'2' if passes == 2 else ''}T(N-1)"
    if padding not in range(counted.world_size):
        judge.violated(
            f"{number_of(counted.world_size, 'rank')} sent {total:,} bytes together for "
            f"{number_of(counted.numel, 'element')} of "
            f"{counted.input_bytes:,} bytes: {counted.by_rank}; padding by up to N-1 elements does not explain it",
            expected=f"{sums} = {needed:,} over all ranks",
            observed=f"{total:,}",
            witness=Witness.TRACE,
            unit="bytes",
            outcomes=counted.outcomes,
        )
    layout = "padded so that N divides it" if padding else "not padded"
    judge.holds(
        expected=f"{sums} = {needed:,} over all ranks, at most {others * largest:,} on one",
        observed=f"{total:,} over all ranks, {max(counted.by_rank):,} on the busiest",
        witness=Witness.TRACE,
        unit="bytes",
        message=f"the tensor is {layout} when N does not divide it",
        data={
            "layout": layout,
            "elements": counted.numel,
            "padding_bytes": int(padding) * ITEM_BYTES,
            "largest_message_bytes": max((m.num_bytes for sent in counted.sent for m in sent.messages), default=0),
            "sent_bytes": counted.by_rank,
        },
    )


def judge_wire(judge: Judge, counted: Count) -> None:
    """The kernel's account of every rank is what its trace makes on gloo: nothing went another way."""
    for rank, outcome in enumerate(counted.outcomes):
        operations = in_window(outcome.operations, outcome.marks, CALL)
        found = reconcile(operations, outcome.sent_bytes(CALL), counted.world_size, rank)
        if found.explained is None:
            judge.holds(
                expected=f"{found.expected_bytes:,}: the messages of the trace on gloo",
                observed="not seen",
                witness=Witness.TRACE,
                unit="bytes",
                message=f"{found.sentence}: the verdict rests on the trace",
            )
            return
        if not found.explained:
            judge.violated(
                found.sentence,
                expected=f"{found.expected_bytes:,} within {found.tolerance_bytes:,}",
                observed=f"{found.sent_bytes:,}",
                witness=Witness.WIRE,
                unit="bytes",
                outcomes=counted.outcomes,
            )
    judge.holds(
        expected=f"{found.expected_bytes:,} within {found.tolerance_bytes:,}: the messages of the trace on gloo",
        observed=f"{found.sent_bytes:,}",
        witness=Witness.WIRE,
        unit="bytes",
        message=f"the operating system saw each of {number_of(counted.world_size, 'rank')} send what its trace says",
    )


def judge_steps(judge: Judge, counted: Count, formula: str, expected: int) -> None:
    """Every rank sent exactly so many messages, and the longest chain is as long."""
    for rank, sent in enumerate(counted.sent):
        if len(sent.messages) != expected:
            judge.violated(
                f"rank {rank} of {counted.world_size} sent {number_of(len(sent.messages), 'message')}"
                + (f": {traffic.described(sent.messages)}" if sent.messages else ""),
                expected=f"{formula} = {expected}",
                observed=len(sent.messages),
                witness=Witness.TRACE,
                unit="messages",
                outcomes=counted.outcomes,
            )
    chain = longest_chain(judge, counted)
    rounds = counted.rounds(expected)
    if chain != expected and not rounds:
        judge.violated(
            f"each rank sends {number_of(expected, 'message')}, but the longest chain of messages on "
            f"{number_of(counted.world_size, 'rank')} "
            f"takes {number_of(chain, 'step')}",
            expected=f"{formula} = {expected}",
            observed=chain,
            witness=Witness.TRACE,
            unit="steps",
            outcomes=counted.outcomes,
        )
    judge.holds(
        expected=f"{formula} = {number_of(expected, 'message')} on each of "
        f"{number_of(counted.world_size, 'rank')}, in as many steps",
        observed=f"{number_of(expected, 'message')}, {number_of(expected, 'step')}"
        + (f" of {rounds} rounds each" if rounds else ""),
        witness=Witness.TRACE,
        unit="steps",
        message=_IN_ROUNDS.format(formula=formula, rounds=rounds)
        if rounds
        else f"{formula} messages per rank, and a longest chain of {formula}",
    )


_IN_ROUNDS = (
    "{formula} messages per rank in as many steps; some ranks receive before they send, as blocking sends ask for, so "
    "that the messages of a step leave in {rounds} rounds"
)


def longest_chain(judge: Judge, counted: Count) -> int:
    """Steps of the call; a trace that does not add up leaves the check inconclusive."""
    try:
        return counted.longest_chain
    except Unmatched as error:
        judge.inconclusive(f"the order of the messages cannot be told from the trace: {error}")
