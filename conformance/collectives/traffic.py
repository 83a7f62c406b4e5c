"""What one call put on its way, read from the trace: payload messages, their bytes, and what cannot be attributed.

Every send counts with all its bytes, with one exception: the header that the rig's own mesh puts before a payload. It
is left out only where it is nothing else, that is `HEADER_BYTES` long, with tag `HEADER_TAG`, and followed by its
payload to the same rank (or by nothing, when an empty tensor was sent: the judge says how many of these there can be).
So a payload in the guise of headers counts. Control messages that an implementation sends by itself (sizes, tokens)
are its messages: they cost a latency each and count as steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from fractions import Fraction

from conformance.collectives.programs import BEGIN, END
from fixtures.world.outcome import Operation, Outcome
from impls.mesh import HEADER_BYTES, HEADER_TAG, PAYLOAD_TAG

_NOT_DATA = frozenset({"send", "recv", "barrier", "new_group"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What one rank sent in one call."""

    messages: tuple[Operation, ...]  # sends, the mesh's headers left out
    lone_headers: tuple[Operation, ...]  # headers without a payload: of an empty tensor, or data in disguise
    collectives: tuple[Operation, ...]  # collectives of the library that carry data
    barriers: int

    @property
    def num_bytes(self) -> int:
        """Bytes of the messages."""
        return sum(operation.num_bytes for operation in self.messages)


def of_call(outcome: Outcome) -> list[Operation]:
    """The operations that a rank issued between the two marks of a program, in order."""
    marks = {mark.name: mark.at_ns for mark in outcome.marks}
    begin, end = marks[BEGIN], marks[END]
    return [operation for operation in outcome.operations if begin <= operation.issued_ns <= end]


def sent(operations: Sequence[Operation], *, empty_tensors: int = 0) -> Sent:
    """Take the sends of one rank apart. ``empty_tensors``: how many of them a mesh may have announced by a header."""
    sends = [operation for operation in operations if operation.kind == "send"]
    headers = {i for i, operation in enumerate(sends) if is_header(operation)}
    paired = {i for i in headers if _has_payload(sends, i)}
    lone = sorted(headers - paired)
    allowed = set(lone[:empty_tensors])
    return Sent(
        messages=tuple(operation for i, operation in enumerate(sends) if i not in paired | allowed),
        lone_headers=tuple(sends[i] for i in lone),
        collectives=tuple(o for o in operations if o.kind not in _NOT_DATA and o.num_bytes),
        barriers=sum(operation.kind == "barrier" for operation in operations),
    )


def is_header(operation: Operation) -> bool:
    """Whether it looks like the header of a message of the rig's mesh."""
    return operation.tag == HEADER_TAG and operation.num_bytes == HEADER_BYTES and operation.dtype == "int64"


def _has_payload(sends: Sequence[Operation], position: int) -> bool:
    """Whether the next thing sent to the same rank is what a mesh sends after its header."""
    header = sends[position]
    after = next((o for o in sends[position + 1 :] if (o.peer, o.group) == (header.peer, header.group)), None)
    return after is not None and after.tag == PAYLOAD_TAG + after.num_bytes % 2**29


def described(operations: Sequence[Operation]) -> str:
    """Kinds and sizes of operations, the first few in words."""
    parts = [f"{o.kind} of {o.num_bytes:,} bytes ({o.where})" if o.where else o.kind for o in operations[:3]]
    return ", ".join(parts) + (f" and {len(operations) - 3} more" if len(operations) > 3 else "")


def logical_bytes(operations: Sequence[Operation]) -> Fraction:
    """What a rank sends on average for these operations by the best algorithm, whatever the backend makes of them.

    T(N-1)/N for an all-gather, a reduce-scatter, an all-to-all, a broadcast or a reduce of T bytes, twice that for
    an all-reduce; a send counts as it is, the mesh's headers left out.
    """
    return sum((_LOGICAL.get(o.kind, _nothing)(o) for o in operations if o.num_bytes), Fraction(0)) + Fraction(
        sent(operations).num_bytes
    )


def _nothing(operation: Operation) -> Fraction:
    return Fraction(0)


def _once(operation: Operation) -> Fraction:
    size = len(operation.ranks)
    return Fraction(operation.num_bytes * (size - 1), size)


def _both_ways(operation: Operation) -> Fraction:
    return 2 * _once(operation)


def _to_or_from_one(operation: Operation) -> Fraction:
    return _once(operation) / len(operation.ranks)


_LOGICAL: dict[str, Callable[[Operation], Fraction]] = {
    "all_reduce": _both_ways,
    **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce"), _once),
    **dict.fromkeys(("gather", "scatter"), _to_or_from_one),
}
