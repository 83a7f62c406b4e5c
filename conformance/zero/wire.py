"""The wire of a training step, set against its trace and against a formula: what every stage's traffic check shows."""

from __future__ import annotations

from conformance.checks import Judge
from conformance.verdict import Witness
from fixtures.witness.compare import in_window, reconcile
from fixtures.world.outcome import Outcomes

OPTIMAL = frozenset({"send", "recv", "all_gather", "all_reduce"})  # gloo sends what these have to move, and no more
OVERHEAD = 1.1  # its preambles are under a tenth from 64 KiB on
SLACK_BYTES = 4096  # flags and other notes


def judge_wire(judge: Judge, outcomes: Outcomes, window: str, formula_bytes: int, formula: str) -> None:
    """Every rank sent what its trace makes on gloo; and the formula, unless gloo's own algorithms send more.

    gloo's reduce_scatter sends as much as an all-reduce, and its broadcast is a tree. So there the wire is only shown,
    and the verdict on bytes rests on the trace.
    """
    for rank, outcome in enumerate(outcomes):
        operations = in_window(outcome.operations, outcome.marks, window)
        found = reconcile(operations, outcome.sent_bytes(window), len(outcomes), rank)
        if found.sent_bytes is None:
            judge.holds(
                expected=f"{formula} = {formula_bytes:,}",
                observed="not seen",
                witness=Witness.TRACE,
                unit="bytes",
                message=f"{found.sentence}: the verdict rests on the trace",
            )
            return
        others = {operation.kind for operation in operations if operation.num_bytes > SLACK_BYTES} - OPTIMAL
        over = found.sent_bytes - OVERHEAD * formula_bytes - SLACK_BYTES
        if not found.explained or (not others and over > 0):
            judge.violated(
                found.sentence,
                expected=f"{formula} = {formula_bytes:,}",
                observed=f"{found.sent_bytes:,}",
                witness=Witness.WIRE,
                unit="bytes",
                outcomes=outcomes,
            )
    told = f"the operating system saw rank {rank} send {found.sent_bytes:,} bytes, {formula} = {formula_bytes:,}"
    names = " and ".join(sorted(others))
    judge.holds(
        expected=f"{formula} = {formula_bytes:,}",
        observed=f"{found.sent_bytes:,}",
        witness=Witness.WIRE,
        unit="bytes",
        message=f"{told}: gloo's own {names} sends more than it has to, so the verdict rests on the trace"
        if others
        else f"{told}, preambles included",
        examples=len(outcomes),
    )
