"""How many steps an algorithm takes, from the trace of all ranks: the length of its longest chain of messages.

In one step a rank can send one message and receive one. A message can leave once everything is there that its sender
had received before it sent it, and once the sender's earlier messages have left; this is the alpha of the usual cost
model. So N-1 messages that one root sends, or receives, take N-1 steps, although none of them depends on another.

A ring over blocking sends lets some ranks receive before they send, in the very same step. Which half comes first is
no dependency, so `Order.WITHIN_A_STEP` leaves out that a rank's n-th message follows its n-th receive; how many ranks
wait for one another inside of a step is then counted apart, by `num_rounds`.

Pure: operations in, numbers out.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from conformance.collectives.traffic import is_header, sent
from fixtures.world.outcome import Operation


class Unmatched(ValueError):
    """A rank acted on a message that the trace does not show being sent, or that waits for itself."""


class _Name(NamedTuple):
    """A message as both ends can name it: the n-th of its stream. Unique among what one rank receives."""

    src: int
    group: str
    tag: int
    number: int


@dataclasses.dataclass(frozen=True, slots=True)
class _Message:
    name: _Name
    dst: int
    needs: frozenset[_Name]  # what its sender had received before it was issued


class Order(enum.Enum):
    """What of a rank's own order counts as waiting."""

    AS_ISSUED = enum.auto()
    WITHIN_A_STEP = enum.auto()  # not whether it sends or receives first in one step


def num_steps(
    operations: Sequence[Sequence[Operation]], *, empty_tensors: int = 0, order: Order = Order.AS_ISSUED
) -> int:
    """Steps that the sends of one call take; ``operations`` are those of each rank, in rank order.

    Headers of the mesh travel with their payload. Raises Unmatched when the trace does not add up.
    """
    queues = [deque(_messages(rank, issued, empty_tensors, order)) for rank, issued in enumerate(operations)]
    arrived: list[set[_Name]] = [set() for _ in operations]
    step = 0
    while any(queues):
        step += 1
        leaving = _leaving(queues, arrived)
        if not leaving:
            stuck = next(queue[0] for queue in queues if queue)
            raise Unmatched(f"rank {stuck.name.src} sent to rank {stuck.dst} after receiving what nobody had sent")
        for rank in leaving:
            message = queues[rank].popleft()
            arrived[message.dst].add(message.name)
    return step


def _leaving(queues: Sequence[deque[_Message]], arrived: Sequence[set[_Name]]) -> list[int]:
    """The ranks whose next message leaves in this step: what it needs is there, and its receiver is still free.

    Among several for one receiver the sender with the most messages left goes first.
    """
    taken: set[int] = set()
    leaving = []
    for rank in sorted((r for r, queue in enumerate(queues) if queue), key=lambda r: -len(queues[r])):
        message = queues[rank][0]
        if message.dst not in taken and message.needs <= arrived[rank]:
            taken.add(message.dst)
            leaving.append(rank)
    return leaving


def num_rounds(operations: Sequence[Sequence[Operation]], *, empty_tensors: int = 0) -> int:
    """The most messages of one step that leave one after the other: 2 where even ranks send first and odd ones last.

    A chain that closes, because what a rank sends and receives n-th is not one step, counts all there is.
    """
    waits_for = {
        (rank, number): (source, number)
        for rank, issued in enumerate(operations)
        for number, source in _late(rank, issued, empty_tensors)
    }
    return max((_chain(message, waits_for) for message in waits_for), default=1)


def _late(rank: int, operations: Sequence[Operation], empty_tensors: int) -> list[tuple[int, int]]:
    """The steps in which a rank received before it sent, and from whom."""
    messages = _messages(rank, operations, empty_tensors, Order.AS_ISSUED)
    pairs = enumerate(zip(messages, _received(operations), strict=False))
    return [(number, name.src) for number, (message, (name, _)) in pairs if name in message.needs]


def _chain(message: tuple[int, int], waits_for: Mapping[tuple[int, int], tuple[int, int]]) -> int:
    length = 1
    while message in waits_for and length <= len(waits_for):
        message, length = waits_for[message], length + 1
    return length


def _messages(rank: int, operations: Sequence[Operation], empty_tensors: int, order: Order) -> list[_Message]:
    """The payload messages that one rank sent, in order of issue."""
    payload = {operation.seq for operation in sent(operations, empty_tensors=empty_tensors).messages}
    leaving = [(name, operation) for name, operation in _named(operations, "send") if operation.seq in payload]
    return [
        _Message(
            name=name._replace(src=rank),
            dst=operation.peer,
            needs=frozenset(
                before
                for place, (before, done_ns) in enumerate(_received(operations))
                if 0 < done_ns <= operation.issued_ns and (place != number or order is Order.AS_ISSUED)
            ),
        )
        for number, (name, operation) in enumerate(leaving)
    ]


def _received(operations: Sequence[Operation]) -> list[tuple[_Name, int]]:
    """What one rank asked to receive, in order of issue, and when it was there (0: never)."""
    return [(name, operation.done_ns) for name, operation in _named(operations, "recv") if not is_header(operation)]


def _named(operations: Sequence[Operation], kind: str) -> list[tuple[_Name, Operation]]:
    """Sends or receives with their place in the stream that they share with the peer; ``src`` is the peer."""
    counts: Counter[tuple[int, str, int]] = Counter()
    named = []
    for operation in operations:
        if operation.kind == kind:
            stream = (operation.peer, operation.group, operation.tag)
            named.append((_Name(*stream, counts[stream]), operation))
            counts[stream] += 1
    return named
