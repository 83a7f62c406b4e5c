"""What the messages of a pipeline's step are: activations, their gradients, what comes on top, and notes.

A message is a send, or a broadcast in a group of two ranks, which is the same by another name. Everything of at most
`NOTE_BYTES` is a note: a header of shape and dtype, a loss, a word between ranks; activations are made to be larger.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from fixtures.world.outcome import Operation
from impls.reference.pipeline.placement import Placement
from impls.words import number_of

NOTE_BYTES = 2048
_SILENT = frozenset({"barrier", "new_group", "recv", "unseen"})  # a receive is another rank's send
_SUMS = frozenset(
    {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}
)
Pair = tuple[int, int]  # source and destination


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a step has to move. `shared_bytes`: of the parameters of which two ranks hold a copy, by rank."""

    placement: Placement
    num_microbatches: int
    activation_bytes: int
    shared_bytes: Mapping[int, int] = dataclasses.field(default_factory=dict)

    def crossings(self) -> Counter[Pair]:
        """How many activations and gradients go from rank to rank; none where both stages are on one."""
        found: Counter[Pair] = Counter()
        for microbatch in range(self.num_microbatches):
            direction = self.placement.direction_of(microbatch, self.num_microbatches)
            ranks = self.placement.ranks[direction]
            for before, behind in itertools.pairwise(ranks):
                if before != behind:
                    found[before, behind] += 1  # the activation
                    found[behind, before] += 1  # its gradient
        return found

    def shares(self, pair: Pair) -> bool:
        """Whether both ranks hold copies of parameters, whose gradients they have to add up."""
        return all(self.shared_bytes.get(rank) for rank in pair)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The operations of one step on all ranks."""

    messages: Mapping[Pair, Sequence[Operation]]  # between two ranks, by who sends
    small: Mapping[Pair, Sequence[Operation]]  # notes between two ranks; or pieces of a message
    sums: Mapping[int, Sequence[Operation]]  # collective operations, by rank
    notes: Sequence[Operation]  # all of them

    @classmethod
    def of(cls, by_rank: Sequence[Iterable[Operation]]) -> Step:
        """Sort the operations of every rank, given in rank order."""
        messages: defaultdict[Pair, list[Operation]] = defaultdict(list)
        small: defaultdict[Pair, list[Operation]] = defaultdict(list)
        sums: defaultdict[int, list[Operation]] = defaultdict(list)
        notes = []
        for rank, operations in enumerate(by_rank):
            for op in operations:
                if op.kind in _SILENT:
                    continue
                is_note, peer = op.num_bytes <= NOTE_BYTES, _receiver(op, rank)
                if is_note:
                    notes.append(op)
                if peer is not None:
                    (small if is_note else messages)[rank, peer].append(op)
                elif not is_note and not _is_receive(op, rank):
                    sums[rank].append(op)
        return cls(messages=dict(messages), small=dict(small), sums=dict(sums), notes=tuple(notes))

    def sent_bytes(self, rank: int) -> tuple[int, int]:
        """Bytes that a rank gives to others, in its large messages and in small ones."""
        large, small = (
            sum(_bytes(ops) for (source, _), ops in messages.items() if source == rank)
            for messages in (self.messages, self.small)
        )
        return large + _bytes(self.sums.get(rank, ())), small


def _receiver(op: Operation, rank: int) -> int | None:
    """The other rank, where `rank` sends to one."""
    if op.kind == "send":
        return op.peer
    return sum(op.ranks) - rank if _is_of_two(op) and op.root == rank else None


def _is_receive(op: Operation, rank: int) -> bool:
    return _is_of_two(op) and op.root != rank


def _is_of_two(op: Operation) -> bool:
    return op.kind == "broadcast" and len(op.ranks) == 2


def fault_in(step: Step, plan: Plan) -> str:
    """Why these are not the activations at the boundaries and their gradients; empty where they are."""
    if fault := _sums_fault(step, plan):
        return fault
    crossings = plan.crossings()
    for pair, operations in step.messages.items():
        if pair not in crossings and not plan.shares(pair):
            return (
                f"rank {pair[0]} sends {_bytes(operations):,} bytes to rank {pair[1]}, which holds no stage next to "
                f"one of its own ({operations[0].where or operations[0].kind})"
            )
    for pair, count in crossings.items():
        if fault := _crossing_fault(step, plan, pair, count):
            return fault
    return _extra_fault(step, plan)


def extras(step: Step, plan: Plan) -> dict[int, int]:
    """By rank, the bytes that are no activation and no gradient of one: the sums over copies of parameters."""
    found: dict[int, int] = defaultdict(int)
    for pair, operations in step.messages.items():
        if plan.shares(pair):
            found[pair[0]] += _bytes(op for op in operations if not _is_activation(op, plan))
    for rank, operations in step.sums.items():
        found[rank] += _bytes(operations)
    return dict(found)


def _crossing_fault(step: Step, plan: Plan, pair: Pair, count: int) -> str:
    operations = step.messages.get(pair, ())
    if plan.shares(pair):
        operations = [op for op in operations if _is_activation(op, plan)]
    wanted, found = count * plan.activation_bytes, _bytes(operations)
    small = step.small.get(pair, ())
    if (
        found <= wanted + NOTE_BYTES * count
        and found + _bytes(small) >= wanted
        and len(operations) + len(small) >= count
    ):
        return ""
    return (
        f"rank {pair[0]} sends rank {pair[1]} {found:,} bytes in {number_of(len(operations), 'message')}, where "
        f"{count} activations "
        f"or gradients of {plan.activation_bytes:,} bytes pass between their stages"
    )


def _sums_fault(step: Step, plan: Plan) -> str:
    for rank, operations in step.sums.items():
        if not any(plan.shared_bytes.values()) or any(op.kind not in _SUMS for op in operations):
            first = operations[0]
            return (
                f"rank {rank} moves {_bytes(operations):,} bytes by {first.kind} over ranks {list(first.ranks)}, "
                f"where messages between two ranks are enough ({first.where or 'no place known'})"
            )
    return ""


def _extra_fault(step: Step, plan: Plan) -> str:
    for rank, num_bytes in extras(step, plan).items():
        shared = plan.shared_bytes.get(rank) or max(plan.shared_bytes.values())  # or zeros, in a sum over all ranks
        if num_bytes > 2 * shared + NOTE_BYTES:
            return f"rank {rank} moves {num_bytes:,} bytes to add up gradients of {shared:,} that another rank has too"
    return ""


def _is_activation(op: Operation, plan: Plan) -> bool:
    return plan.activation_bytes <= op.num_bytes <= plan.activation_bytes + NOTE_BYTES


def _bytes(operations: Iterable[Operation]) -> int:
    return sum(op.num_bytes for op in operations)
