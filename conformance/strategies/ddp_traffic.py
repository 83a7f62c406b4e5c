"""What the operations of a data-parallel step are: gradient traffic, and what is not.

Three ways to sum gradients over ranks send no more than an all-reduce has to: the operation itself, a reduce-scatter
with an all-gather (its two halves), and a home-made ring of sends. Everything that moves gradients otherwise, a star
through one rank or a gathering of all, sends more or through one rank.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from conformance.strategies.programs import INSIDE, window
from fixtures.witness.compare import in_window
from fixtures.world.outcome import Mark, Operation, Outcome
from impls.mesh import HEADER_BYTES, HEADER_TAG

NOTE_BYTES_PER_PARAMETER = 16  # bookkeeping: who used what, how buckets are laid out
NOTE_BYTES = 64
FLAG_BYTES_PER_PARAMETER = 8  # one number of any dtype that travels with the gradients: whether a rank used it
_SILENT = frozenset({"barrier", "new_group"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The operations of one step on one rank."""

    gradients: tuple[Operation, ...]  # issued during backward or the end of the reduction
    notes: tuple[Operation, ...]  # bookkeeping beside them: small, and of integers
    before: tuple[Operation, ...]  # in the forward pass: buffers, layouts
    marks: tuple[Mark, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the operations that move gradients."""
        return frozenset(operation.kind for operation in self.gradients)

    def bytes_of(self, *kinds: str) -> int:
        """Logical bytes of the gradient operations of these kinds."""
        return sum(operation.num_bytes for operation in self.gradients if operation.kind in kinds)


def steps_of(outcome: Outcome) -> list[Step]:
    """The steps of one rank, by the marks at their edges."""
    edges = [mark for mark in outcome.marks if mark.name in ("step-begin", "step-end")]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [_step(outcome, index, begin.at_ns, end.at_ns) for index, (begin, end) in enumerate(pairs)]


def _step(outcome: Outcome, index: int, begin_ns: int, end_ns: int) -> Step:
    operations = [op for op in outcome.operations if begin_ns <= op.issued_ns <= end_ns and op.kind not in _SILENT]
    inside = in_window(operations, outcome.marks, window(index))
    notes = tuple(op for op in inside if is_note(op, outcome))
    return Step(
        gradients=tuple(op for op in inside if op not in notes),
        notes=notes,
        before=tuple(op for op in operations if op not in inside),
        marks=tuple(mark for mark in outcome.marks if begin_ns <= mark.at_ns <= end_ns),
    )


def is_note(operation: Operation, outcome: Outcome) -> bool:
    """Whether it is bookkeeping: small and not of the gradients' dtypes, or the header of a message of a mesh."""
    if operation.tag == HEADER_TAG and operation.num_bytes == HEADER_BYTES and operation.kind in ("send", "recv"):
        return True
    small = operation.num_bytes <= NOTE_BYTES + NOTE_BYTES_PER_PARAMETER * outcome.value["num_parameters"]
    return small and operation.dtype not in outcome.value["dtypes"]


def inside_no_sync(outcome: Outcome) -> list[Operation]:
    """The operations between the marks around what ran in ``no_sync()``."""
    begun = [mark.at_ns for mark in outcome.marks if mark.name == f"{INSIDE}-begin"]
    ended = [mark.at_ns for mark in outcome.marks if mark.name == f"{INSIDE}-end"]
    spans = list(zip(begun, ended, strict=True))
    return [op for op in outcome.operations if any(begin <= op.issued_ns <= end for begin, end in spans)]


def fault_in(step: Step, gradient_bytes: int, world_size: int, num_parameters: int = 0) -> str:
    """Why the operations of a step are no all-reduce of the gradients (and a flag for each); empty when they are."""
    kinds = step.kinds
    flags = FLAG_BYTES_PER_PARAMETER * num_parameters
    padding = flags + 8 * world_size * max(1, len(step.gradients))  # less than N elements for each operation
    if kinds == {"all_reduce"}:
        if any(len(op.ranks) != world_size for op in step.gradients):
            return "an all-reduce does not span all ranks"
        return _unequal(step.bytes_of("all_reduce"), gradient_bytes, flags, "all-reduced")
    if kinds == {"reduce_scatter", "all_gather"}:
        return _unequal(step.bytes_of("reduce_scatter"), gradient_bytes, padding, "reduce-scattered") or _unequal(
            step.bytes_of("all_gather"), gradient_bytes, padding, "gathered"
        )
    if kinds <= {"send", "recv"} and kinds:
        limit = 2 * gradient_bytes * (world_size - 1) // world_size + 2 * padding * world_size
        sent = step.bytes_of("send")
        return "" if sent <= limit else f"{sent:,} bytes sent, where a ring sends at most {limit:,}"
    if not kinds:
        return "no operation moved gradients"
    return f"gradients travel by {', '.join(sorted(kinds))}, not by all-reduce"


def _unequal(observed: int, expected: int, tolerance: int, verb: str) -> str:
    if expected <= observed <= expected + tolerance:
        return ""
    return f"{observed:,} bytes {verb}, the gradients have {expected:,}"


def blocked(operation: Operation, marks: Sequence[Mark]) -> bool:
    """Whether the program waited for it before it computed anything else: issued early, and yet nothing overlaps."""
    if not operation.waited_ns:
        return False
    return not any(operation.issued_ns < mark.at_ns < operation.waited_ns for mark in marks)


def weight_gradients(marks: Iterable[Mark]) -> list[Mark]:
    """The moments at which parameters had their gradients, in order."""
    return [mark for mark in marks if mark.name == "weight-gradient"]
