"""What a step under a ZeRO stage moves, and which patterns of operations are faults; on made-up traces of 3 ranks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from conformance.judge import Broken, Judge
from conformance.verdict import Witness
from conformance.zero import stage_traffic
from conformance.zero.stage_traffic import Sizes, Step, steps_of
from conformance.zero.traffic_programs import (
    AVERAGING_END,
    BACKWARD_END,
    COMPUTES,
    FORWARD_END,
    STEP_BEGIN,
    STEP_END,
)
from conformance.zero.wire import judge_wire
from fixtures.witness.gloo import traffic
from fixtures.world.outcome import Ending, Mark, Operation, Outcome, Outcomes, WireWindow
from impls.mesh import HEADER_BYTES, HEADER_TAG, PAYLOAD_TAG

LAYERS, LAYER = 5, 6000  # layers, and bytes of each
TOTAL = LAYERS * LAYER
SIZES = Sizes(parameter_bytes=TOTAL, padding_bytes=2 * LAYERS * 4, num_parameters=LAYERS, world_size=3)


def _op(kind: str, num_bytes: int, at: int = 0, **more: Any) -> Operation:
    named: dict[str, Any] = {"seq": at, "group": "0", "ranks": (0, 1, 2), "group_seq": 0, "dtype": "float32", **more}
    return Operation(kind=kind, num_bytes=num_bytes, shape=(num_bytes // 4,), issued_ns=at, **named)


def _ring(num_bytes: int) -> list[Operation]:
    """One direction of a ring over the rig's mesh: N-1 chunks of a third, each behind its header."""
    chunk = num_bytes // 3
    header = _op("send", HEADER_BYTES, tag=HEADER_TAG, dtype="int64", peer=1)
    return [header, _op("send", chunk, tag=PAYLOAD_TAG + chunk, peer=1), _op("recv", chunk, peer=2)] * 2


def _step(
    forward: Sequence[Operation] = (),
    backward: Sequence[Operation] = (),
    update: Sequence[Operation] = (),
    averaging: Sequence[Operation] = (),
    computing: Sequence[int] = (),
) -> Step:
    return Step(
        forward=(tuple(forward),),
        backward=(tuple(backward),),
        averaging=tuple(averaging),
        update=tuple(update),
        computing=(tuple(computing),),
    )


def test_a_step_is_cut_at_the_marks_and_what_is_between_steps_belongs_to_none() -> None:
    names = [STEP_BEGIN, FORWARD_END, BACKWARD_END, FORWARD_END, BACKWARD_END, AVERAGING_END, STEP_END, STEP_BEGIN]
    marks = [Mark(name=name, at_ns=10 * (i + 1)) for i, name in enumerate(names)]
    marks.insert(1, Mark(name=COMPUTES, at_ns=12))
    times = [5, 11, 21, 31, 41, 51, 61, 75]
    operations = [*(_op("all_gather", LAYER, at) for at in times), _op("barrier", 0, 33)]
    first, second = steps_of(Outcome(rank=0, ending=Ending.RETURNED, operations=operations, marks=tuple(marks)))
    assert [[op.issued_ns for op in run] for run in first.forward] == [[11], [31]]
    assert [[op.issued_ns for op in run] for run in first.backward] == [[21], [41]]
    assert [op.issued_ns for op in (*first.averaging, *first.update)] == [51, 61]
    assert first.computing == ((12,), ())
    assert second.own == ()


def test_headers_receives_and_small_operations_are_no_data_and_payloads_in_their_guise_are() -> None:
    note, disguised = _op("all_reduce", SIZES.note_bytes), _op("send", 2000, tag=HEADER_TAG, dtype="int64")
    assert stage_traffic.data([note, disguised], SIZES) == (disguised,)
    assert stage_traffic.notes_bytes([note, disguised], SIZES) == Fraction(4, 3) * SIZES.note_bytes
    assert [op.num_bytes for op in stage_traffic.data(_ring(TOTAL), SIZES)] == [TOTAL // 3] * 2
    assert stage_traffic.notes_bytes(_ring(TOTAL), SIZES) == 0


# -- ZeRO-1 and ZeRO-2 -------------------------------------------------------------------------------------------------

OWNERS = [_op(kind, LAYER, root=i % 3) for kind in ("reduce", "broadcast") for i in range(LAYERS)]


@pytest.mark.parametrize(
    "step",
    [
        _step(update=[_op("reduce_scatter", TOTAL), _op("all_gather", TOTAL)]),
        _step(backward=[_op("reduce_scatter", LAYER)] * LAYERS, update=[_op("all_gather", TOTAL)]),
        _step(backward=[_op("reduce_scatter", TOTAL + 12)], update=[_op("all_gather", TOTAL + 12)]),
        _step(update=[*_ring(TOTAL), _op("all_gather", TOTAL)]),
        _step(update=[*_ring(TOTAL), *_ring(TOTAL)]),
        _step(update=OWNERS),
        _step(update=[_op("all_to_all", TOTAL), _op("all_gather", TOTAL), _op("all_reduce", 40)]),
        _step(forward=[_op("all_gather", TOTAL)], backward=[_op("reduce_scatter", TOTAL)]),
    ],
    ids=["flat", "buckets", "padded", "ring and gather", "two rings", "owners", "all-to-all, flags", "gathered late"],
)
def test_a_reduce_scatter_and_an_all_gather_in_any_form_is_the_update_of_zero(step: Step) -> None:
    assert stage_traffic.update_fault(step, SIZES) == ""
    assert stage_traffic.num_reductions(step, SIZES) == 1


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (_step(), "nothing: 0 bytes"),
        (_step(update=[_op("all_reduce", TOTAL), _op("all_gather", TOTAL)]), "2T(N-1)/N = 40,000 bytes would do"),
        (_step(update=[_op("reduce_scatter", TOTAL), _op("all_gather", 2 * TOTAL)]), "3.00 T(N-1)/N"),
        (_step(update=[_op("reduce_scatter", TOTAL)] * 2 + [_op("all_gather", TOTAL)]), "3.00 T(N-1)/N"),
        (_step(update=[_op("reduce_scatter", TOTAL)]), "1.00 T(N-1)/N and not 2"),
        (_step(update=[*_ring(TOTAL)] * 3), "3.00 T(N-1)/N"),
        (
            _step(update=[_op("reduce_scatter", TOTAL), _op("all_gather", TOTAL), *[_op("all_reduce", 140)] * 9]),
            "small",
        ),
    ],
    ids=["nothing", "all-reduce", "a gather of twice", "reduced twice", "no way back", "rings", "chatter"],
)
def test_what_moves_more_or_less_is_told_with_both_figures(step: Step, said: str) -> None:
    assert said in stage_traffic.update_fault(step, SIZES)


def test_each_microbatch_may_be_reduced_but_parameters_are_gathered_once() -> None:
    scatter, gather = _op("reduce_scatter", TOTAL), _op("all_gather", TOTAL)
    thrice = _step(backward=[scatter] * 3, update=[gather])
    assert stage_traffic.update_fault(thrice, SIZES, micro=3) == ""
    assert stage_traffic.num_reductions(thrice, SIZES) == 3
    assert "3.00 T(N-1)/N and not 2" in stage_traffic.update_fault(
        _step(backward=[scatter] * 2, update=[gather]), SIZES
    )
    more = _step(backward=[scatter] * 3, update=[gather] * 2)
    assert "from 2 to 4 for 3 microbatches" in stage_traffic.update_fault(more, SIZES, micro=3)


def test_after_averaged_gradients_the_way_back_alone_is_the_optimizers_own() -> None:
    averaging = [_op("all_reduce", TOTAL)]
    broadcasts = [_op("broadcast", LAYER, root=i % 3) for i in range(LAYERS)]
    assert stage_traffic.way_back_fault(_step(averaging=averaging, update=broadcasts), SIZES) == ""
    everything = _step(averaging=averaging, update=[_op("all_reduce", TOTAL)])
    assert "2.00 T(N-1)/N, one is enough" in stage_traffic.way_back_fault(everything, SIZES)


# -- ZeRO-3 ------------------------------------------------------------------------------------------------------------

TIMES = range(10, 10 + 10 * LAYERS, 10)  # a layer computes just after its gather
COMPUTING = [at + 5 for at in TIMES]
GATHERS = [_op("all_gather", LAYER, at) for at in TIMES]
SCATTERS = [_op("reduce_scatter", LAYER)] * LAYERS
RINGS = list(itertools.chain.from_iterable(_ring(LAYER) for _ in range(LAYERS)))


def _ring_at(at: int) -> list[Operation]:
    return [_op(op.kind, op.num_bytes, at, tag=op.tag, dtype=op.dtype, peer=op.peer) for op in _ring(LAYER)]


RINGS_FORWARD = list(itertools.chain.from_iterable(map(_ring_at, TIMES)))


def _fault(forward: Sequence[Operation], backward: Sequence[Operation], update: Sequence[Operation] = ()) -> str:
    return stage_traffic.traffic_fault(_step(forward, backward, update, computing=COMPUTING), SIZES)


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (GATHERS, GATHERS + SCATTERS),
        (GATHERS, GATHERS[1:] + SCATTERS),
        (GATHERS, SCATTERS),
        (GATHERS, GATHERS + RINGS),
        (RINGS_FORWARD, RINGS + SCATTERS),
        (RINGS_FORWARD, RINGS + RINGS),
        ([*GATHERS, _op("all_gather", LAYER, 99)], GATHERS[1:] + SCATTERS),
        ([_op("broadcast", LAYER // 3, at, root=r) for at in TIMES for r in range(3)], SCATTERS),
        ([_op("all_gather", LAYER + 8, at) for at in TIMES], [_op("reduce_scatter", LAYER + 8)] * LAYERS),
    ],
    ids=["twice", "one kept", "all kept", "ring reduce", "ring gather", "rings", "ahead", "broadcasts", "padded"],
)
def test_gathers_unit_by_unit_and_one_reduction_are_the_traffic_of_fsdp(
    forward: list[Operation], backward: list[Operation]
) -> None:
    assert _fault(forward, backward) == ""


@pytest.mark.parametrize(
    ("forward", "backward", "update", "said"),
    [
        ([_op("all_gather", TOTAL, 10)], SCATTERS, [], "not layer by layer"),
        ([_op("all_gather", LAYER, 10)] * LAYERS, SCATTERS, [], "not layer by layer"),
        (GATHERS, [*GATHERS, _op("all_reduce", TOTAL)], [], "all-reduced, not scattered"),
        (GATHERS, GATHERS * 2 + SCATTERS, [], "60,000 bytes for the backward one"),
        (GATHERS * 2, SCATTERS, [], "60,000 bytes are gathered for the forward pass"),
        (GATHERS[1:], GATHERS + SCATTERS, [], "the forward pass gathers 24,000 bytes of 30,000"),
        ([], SCATTERS, [], "the forward pass gathers 0 bytes"),
        (GATHERS, GATHERS + SCATTERS[1:], [], "gradients of 24,000 bytes are reduce-scattered"),
        (GATHERS, GATHERS + SCATTERS * 2, [], "gradients of 60,000 bytes are reduce-scattered"),
        (GATHERS, SCATTERS, [_op("all_gather", TOTAL)], "the optimizer's step"),
        (RINGS_FORWARD, RINGS * 3, [], "60,000 bytes for the backward one"),
    ],
    ids=[
        *("one unit", "all at once", "all-reduce", "thrice", "twice ahead", "one stale", "all stale"),
        *("one not reduced", "reduced twice", "gathered after the step", "rings"),
    ],
)
def test_other_patterns_than_fsdps_are_told(
    forward: list[Operation], backward: list[Operation], update: list[Operation], said: str
) -> None:
    assert said in _fault(forward, backward, update)


def test_parameters_outside_of_all_layers_may_stay_whole() -> None:
    step = _step(GATHERS[1:], [*SCATTERS[1:], _op("all_reduce", LAYER)], computing=COMPUTING)
    assert stage_traffic.traffic_fault(step, SIZES, root_bytes=LAYER) == ""
    assert "all-reduced" in stage_traffic.traffic_fault(step, SIZES)
    assert "all-reduced" in stage_traffic.traffic_fault(step, SIZES, root_bytes=LAYER // 2)


@pytest.mark.parametrize(
    ("forward", "backward", "holds"),
    [
        (GATHERS, GATHERS + SCATTERS, [True, None]),
        (GATHERS, GATHERS[1:] + SCATTERS, [True, None]),
        (GATHERS, GATHERS[2:] + SCATTERS, []),
        (GATHERS, SCATTERS, [False, None]),
        (RINGS_FORWARD, RINGS + RINGS, [True, None]),
        (RINGS_FORWARD, RINGS, [False, None]),
    ],
    ids=["all", "all but one", "all but two", "none", "rings", "no rings"],
)
def test_the_backward_pass_gathers_all_units_but_one_again_or_none(
    forward: list[Operation], backward: list[Operation], holds: list[bool | None]
) -> None:
    (found,) = stage_traffic.passes_of(_step(forward, backward, computing=COMPUTING), SIZES)
    choices: list[bool | None] = [True, False, None]
    assert [c for c in choices if not stage_traffic.kept_fault(found, SIZES, resharded=c)] == holds


def test_gathers_and_reductions_are_counted_where_they_are_operations_of_their_own() -> None:
    (found,) = stage_traffic.passes_of(_step(GATHERS, GATHERS[1:] + SCATTERS, computing=COMPUTING), SIZES)
    assert (found.num_gathers, found.num_reductions) == ((5, 4), 5)
    (found,) = stage_traffic.passes_of(_step(RINGS_FORWARD, RINGS, computing=COMPUTING), SIZES)
    assert (found.num_gathers, found.num_reductions) == (None, None)


# -- the wire ----------------------------------------------------------------------------------------------------------


def _seen(kind: str, *, beside: int = 0, is_seen: bool = True) -> Outcomes:
    """Three ranks that move TOTAL in a window, as gloo does, and `beside` bytes that no operation accounts for."""
    moved = _op(kind, TOTAL, at=15)
    marks = (Mark(name="window-begin", at_ns=10, detail="step"), Mark(name="window-end", at_ns=20, detail="step"))
    sent = [traffic(moved, rank)[0].wire_bytes + beside if is_seen else None for rank in range(3)]
    return Outcomes(
        [
            Outcome(
                rank=rank,
                ending=Ending.RETURNED,
                operations=(moved,),
                marks=marks,
                wire=(WireWindow(name="step", sent_bytes=sent[rank]),),
            )
            for rank in range(3)
        ]
    )


@pytest.mark.parametrize(
    ("outcomes", "witness", "said"),
    [
        (_seen("all_gather"), Witness.WIRE, "preambles included"),
        (_seen("reduce_scatter"), Witness.WIRE, "gloo's own reduce_scatter sends more than it has to"),
        (_seen("all_gather", is_seen=False), Witness.TRACE, "rests on the trace"),
    ],
    ids=["optimal", "not optimal", "not seen"],
)
def test_the_wire_is_shown_and_decides_where_gloo_sends_no_more_than_it_has_to(
    outcomes: Outcomes, witness: Witness, said: str
) -> None:
    judge = Judge()
    judge_wire(judge, outcomes, "step", TOTAL * 2 // 3, "T(N-1)/N")
    assert (judge.evidence[0].witness, said in judge.evidence[0].message) == (witness, True)


@pytest.mark.parametrize(
    ("outcomes", "formula_bytes"),
    [(_seen("all_gather", beside=5000), TOTAL), (_seen("all_reduce"), TOTAL * 2 // 3)],
    ids=["behind the trace's back", "twice the formula"],
)
def test_more_on_the_wire_than_the_trace_or_the_formula_says_is_a_violation(
    outcomes: Outcomes, formula_bytes: int
) -> None:
    with pytest.raises(Broken):
        judge_wire(Judge(), outcomes, "step", formula_bytes, "T(N-1)/N")
