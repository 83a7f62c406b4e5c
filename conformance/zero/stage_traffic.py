"""What the operations of a training step under a ZeRO stage move: reductions, gathers, and which of them were too many.

Everything is counted in logical bytes (`conformance.collectives.traffic`): what an operation has to move, whatever the
backend makes of it. T is the bytes of all parameters, N the number of ranks, and T(N-1)/N what one gathering of all
parameters, or one reduce-scatter of all gradients, moves per rank. Small operations are notes (flags, sizes, norms) and
no part of it. Pure functions over the trace of one rank.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from conformance.collectives.traffic import logical_bytes, sent
from conformance.strategies.ddp_traffic import NOTE_BYTES, NOTE_BYTES_PER_PARAMETER
from conformance.zero.traffic_programs import (
    AVERAGING_END,
    BACKWARD_END,
    COMPUTES,
    FORWARD_END,
    STEP_BEGIN,
    STEP_END,
)
from fixtures.world.outcome import Mark, Operation, Outcome
from impls.words import number_of

NOTES_SHARE = Fraction(1, 100)  # of T: what all notes of a pass may add up to
GATHERS = frozenset({"all_gather", "broadcast"})
REDUCTIONS = frozenset({"reduce_scatter", "reduce", "all_to_all"})
_NOT_DATA = frozenset({"barrier", "new_group"})
_EDGES = frozenset({STEP_BEGIN, FORWARD_END, BACKWARD_END, AVERAGING_END, STEP_END})

Run = tuple[Operation, ...]  # in order of issue


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What a model has to move, on so many ranks."""

    parameter_bytes: int  # T
    padding_bytes: int  # at most, in one pass over all parameters
    num_parameters: int
    world_size: int
    replicated_bytes: int = 0  # beside T: parameters that are not sharded

    def share(self, times: int | Fraction = 1) -> Fraction:
        """`times` T(N-1)/N."""
        return times * Fraction(self.parameter_bytes * (self.world_size - 1), self.world_size)

    def whole(self, logical: Fraction) -> Fraction:
        """The bytes of the tensors behind so many logical bytes of gathers or reduce-scatters."""
        return logical * self.world_size / (self.world_size - 1)

    def fits(self, moved: Fraction, times: int | Fraction) -> bool:
        """Whether so many logical bytes are `times` passes over all parameters, up to padding."""
        return abs(moved - self.share(times)) <= times * self.padding_bytes

    @property
    def note_bytes(self) -> int:
        """An operation of no more bytes than this is a note."""
        return NOTE_BYTES + NOTE_BYTES_PER_PARAMETER * self.num_parameters


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The operations of one step on one rank, by phase; forward and backward have one run for each microbatch."""

    forward: tuple[Run, ...]
    backward: tuple[Run, ...]  # with the end of the reduction
    averaging: Run  # not the implementation's own
    update: Run
    computing: tuple[tuple[int, ...], ...]  # when a layer began to compute in each forward pass, in ns

    @property
    def own(self) -> Run:
        """All but the averaging that is done for it."""
        return (*itertools.chain(*self.forward, *self.backward), *self.update)


def sizes_of(outcome: Outcome, world_size: int) -> Sizes:
    """The sizes of the model that this rank reported."""
    names = ("parameter_bytes", "padding_bytes", "num_parameters")
    return Sizes(**{name: outcome.value[name] for name in names}, world_size=world_size)


def steps_of(outcome: Outcome) -> list[Step]:
    """The steps of one rank, cut at the marks of the program."""
    edges = [mark for mark in outcome.marks if mark.name in _EDGES]
    starts = [i for i, mark in enumerate(edges) if mark.name == STEP_BEGIN]
    stops = [*starts[1:], len(edges)]
    operations = [operation for operation in outcome.operations if operation.kind not in _NOT_DATA]
    return [_step(operations, outcome.marks, edges[a:b]) for a, b in zip(starts, stops, strict=True)]


def _step(operations: Sequence[Operation], marks: Iterable[Mark], edges: Sequence[Mark]) -> Step:
    phases: dict[str, list[Run]] = {name: [] for name in _EDGES}
    computing = []
    for begin, end in itertools.pairwise(edges):
        phases[end.name].append(tuple(op for op in operations if begin.at_ns <= op.issued_ns < end.at_ns))
        if end.name == FORWARD_END:
            inside = (mark for mark in marks if begin.at_ns <= mark.at_ns < end.at_ns)
            computing.append(tuple(mark.at_ns for mark in inside if mark.name == COMPUTES))
    return Step(
        forward=tuple(phases[FORWARD_END]),
        backward=tuple(phases[BACKWARD_END]),
        averaging=tuple(itertools.chain(*phases[AVERAGING_END])),
        update=tuple(itertools.chain(*phases[STEP_END])),
        computing=tuple(computing),
    )


def data(operations: Sequence[Operation], sizes: Sizes) -> Run:
    """The operations that move parameters or gradients: sends without headers, and collectives, both without notes."""
    return tuple(op for op in _moving(operations) if op.num_bytes > sizes.note_bytes)


def notes_bytes(operations: Sequence[Operation], sizes: Sizes) -> Fraction:
    """Logical bytes of everything that is too small to be data."""
    return logical_bytes([op for op in _moving(operations) if op.num_bytes <= sizes.note_bytes])


def _moving(operations: Sequence[Operation]) -> list[Operation]:
    taken = sent(operations)
    return sorted((*taken.collectives, *taken.messages), key=lambda op: op.seq)


def told(operations: Sequence[Operation]) -> str:
    """Kinds of operations with their bytes and number: ``all_gather of 4,096 bytes (2)``."""
    total: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for op in operations:
        total[op.kind] += op.num_bytes
        count[op.kind] += 1
    return ", ".join(f"{kind} of {total[kind]:,} bytes ({count[kind]})" for kind in count) or "nothing"


# -- ZeRO-1 and ZeRO-2: a reduce-scatter and an all-gather -------------------------------------------------------------


def update_fault(step: Step, sizes: Sizes, micro: int = 1) -> str:
    """Why a step is not one gathering of the parameters and a reduce-scatter for each microbatch, at most; or nothing.

    A reduce to each owner and a broadcast from each are the same logical bytes, and so is a ring of sends.
    """
    moving = data(step.own, sizes)
    moved, least = logical_bytes(moving), sizes.share(2)
    if reduced := [op for op in moving if op.kind == "all_reduce"]:
        return f"{told(reduced)}: {_bytes(moved)} per rank and step, where 2T(N-1)/N = {_bytes(least)} would do"
    if not any(sizes.fits(moved, times) for times in range(2, micro + 2)):
        ratio = float(moved / sizes.share())
        return f"{told(moving)}: {_bytes(moved)} per rank and step, {ratio:.2f} T(N-1)/N and not {_times(micro)}"
    return _too_many_notes(step.own, sizes)


def way_back_fault(step: Step, sizes: Sizes) -> str:
    """Why what an optimizer moves that is given the mean gradient is no single gathering of parameters; or nothing."""
    moved = logical_bytes(data(step.own, sizes))
    if moved > sizes.share() + sizes.padding_bytes:
        ratio = float(moved / sizes.share())
        return f"{told(data(step.own, sizes))} after the gradients were averaged: {ratio:.2f} T(N-1)/N, one is enough"
    return _too_many_notes(step.own, sizes)


def num_reductions(step: Step, sizes: Sizes) -> int:
    """How often the gradients of a step that has no fault were reduced."""
    return round(logical_bytes(data(step.own, sizes)) / sizes.share()) - 1


def _times(micro: int) -> str:
    return "2" if micro == 1 else f"from 2 to {micro + 1} for {number_of(micro, 'microbatch')}"


def _too_many_notes(operations: Sequence[Operation], sizes: Sizes) -> str:
    if (beside := notes_bytes(operations, sizes)) <= NOTES_SHARE * sizes.parameter_bytes:
        return ""
    return f"{_bytes(beside)} of small operations beside the {sizes.parameter_bytes:,} bytes of the parameters"


# -- ZeRO-3: gathers in both passes, unit by unit ----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One forward pass and its backward; bytes are those of whole tensors, so that T means all parameters once.

    Sends are gathers or reductions by what else is there; where both go by sends, what is beyond one reduction is
    taken for gathers. ``num_`` are None where the operations do not tell.
    """

    gathered_forward: Fraction
    gathered_backward: Fraction
    reduced: Fraction
    all_reduced: Fraction
    gathered_late: Fraction  # of the forward pass: after the first layer had begun to compute
    largest_unit: Fraction  # no unit has more bytes
    num_gathers: tuple[int, int] | None  # forward, backward
    num_reductions: int | None

    def kept(self, sizes: Sizes) -> Fraction:
        """Bytes of parameters that were not gathered again for the backward pass."""
        return max(Fraction(0), sizes.parameter_bytes - self.gathered_backward)


def passes_of(step: Step, sizes: Sizes) -> list[Pass]:
    """Each microbatch of a step."""
    passes = zip(step.forward, step.backward, step.computing, strict=True)
    return [_pass(data(there, sizes), data(back, sizes), computing, sizes) for there, back, computing in passes]


def _pass(forward: Run, backward: Run, computing: Sequence[int], sizes: Sizes) -> Pass:
    gathers = [op for op in forward if op.kind != "all_reduce"]
    by_sends = any(op.kind == "send" for op in gathers)
    gathered, reduced = _apart(backward, by_sends, sizes)
    start = computing[0] if computing else 0
    return Pass(
        gathered_forward=sizes.whole(logical_bytes(gathers)),
        gathered_backward=gathered,
        reduced=reduced,
        all_reduced=sizes.whole(logical_bytes(_of(("all_reduce",), (*forward, *backward)))) / 2,
        gathered_late=sizes.whole(logical_bytes([op for op in gathers if op.issued_ns > start])),
        largest_unit=_largest_unit(gathers, computing, sizes),
        num_gathers=None if by_sends else (len(gathers), len(_of(GATHERS, backward))),
        num_reductions=len(_of(REDUCTIONS, backward)) or None,
    )


def _apart(backward: Run, gathers_are_sends: bool, sizes: Sizes) -> tuple[Fraction, Fraction]:
    """Bytes gathered and bytes reduced in a backward pass."""
    gathered, reduced, sends = (
        sizes.whole(logical_bytes(_of(kinds, backward))) for kinds in (GATHERS, REDUCTIONS, ("send",))
    )
    if reduced:
        return gathered + sends, reduced
    if not gathers_are_sends:
        return gathered, sends
    scattered = min(sends, Fraction(sizes.parameter_bytes))
    return gathered + sends - scattered, scattered


def _of(kinds: Iterable[str], operations: Iterable[Operation]) -> list[Operation]:
    return [op for op in operations if op.kind in frozenset(kinds)]


def _largest_unit(gathers: Sequence[Operation], computing: Sequence[int], sizes: Sizes) -> Fraction:
    """An all-gather is of one unit at most; else what was gathered between two layers is at least one."""
    if gathers and all(op.kind == "all_gather" for op in gathers):
        return Fraction(max(op.num_bytes for op in gathers))
    if not computing:
        return Fraction(sizes.parameter_bytes)
    edges = [0, *computing, 1 << 63]
    runs = [[op for op in gathers if begin <= op.issued_ns < end] for begin, end in itertools.pairwise(edges)]
    return sizes.whole(max(logical_bytes(run) for run in runs))


def traffic_fault(step: Step, sizes: Sizes, root_bytes: int = 0) -> str:
    """Why a step is not a gathering for each pass (or for the forward one only) and a reduce-scatter; or nothing.

    Parameters of `root_bytes` that are in no layer may stay whole on every rank: their gradients are all-reduced.
    """
    if root_bytes and all(found.all_reduced == root_bytes for found in passes_of(step, sizes)):
        sizes = dataclasses.replace(
            sizes, parameter_bytes=sizes.parameter_bytes - root_bytes, replicated_bytes=root_bytes
        )
    if late := data(step.update, sizes):
        return f"the optimizer's step, which has only shards to update, moves {told(late)}"
    for found in passes_of(step, sizes):
        if fault := _pass_fault(found, sizes):
            return fault
    return _too_many_notes(step.own, sizes)


def _pass_fault(found: Pass, sizes: Sizes) -> str:
    whole, padding = sizes.parameter_bytes, sizes.padding_bytes
    ahead = max(Fraction(0), found.gathered_forward - whole)  # for the backward pass, before the forward one has ended
    if found.all_reduced != sizes.replicated_bytes:
        return f"gradients of {_bytes(found.all_reduced)} are all-reduced, not scattered"
    if found.gathered_forward < whole - padding:
        return f"the forward pass gathers {_bytes(found.gathered_forward)} of {whole:,}"
    if found.gathered_backward + ahead > whole + 2 * padding or ahead > found.largest_unit + padding:
        both = f"{_bytes(found.gathered_forward)} are gathered for the forward pass and"
        return f"{both} {_bytes(found.gathered_backward)} for the backward one; the parameters have {whole:,}"
    if abs(found.reduced - whole) > padding:
        return f"gradients of {_bytes(found.reduced)} are reduce-scattered; they have {whole:,}"
    if not found.gathered_late:
        return f"all {whole:,} bytes are gathered before the first layer computes: not layer by layer"
    return ""


def kept_fault(found: Pass, sizes: Sizes, *, resharded: bool | None) -> str:
    """Why a backward pass does not gather as it should; or nothing. ``resharded`` None: either everything or nothing.

    With resharding, all units are gathered again but one that may be kept; without, none.
    """
    kept, whole = found.kept(sizes), sizes.parameter_bytes
    again = kept <= found.largest_unit + sizes.padding_bytes
    never = found.gathered_backward == 0
    if (resharded is not False and again) or (not resharded and never):
        return ""
    wanted = {True: "all but one unit", False: "none", None: "all but one unit, or none"}[resharded]
    return f"the backward pass gathers {_bytes(found.gathered_backward)} of {whole:,}: should be {wanted}"


def _bytes(amount: Fraction) -> str:
    return f"{float(amount):,.0f} bytes"
