"""Lesson 76: on a mesh of queues each collective gives what gloo gives, and sends the bytes of its formula."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.verdict import Witness
from lessons.collectives import faults, told
from lessons.collectives_run import PRIMITIVES, Row, observe

DIVISIBLE = 840  # elements, by 2 to 8
UNEVEN = 101  # by none of them


def _judge(judge: Judge, row: Row) -> None:
    if row.skipped:
        judge.not_provided(row.skipped)
    printed = "\n".join(told([row]))
    assert row.primitive.told in printed
    on_one = row.primitive.on_one(row.world_size, row.numel)
    what = f"{row.primitive.told} of {row.numel} floats on {row.world_size} ranks"
    expected = f"as gloo, {row.primitive.formula} = {on_one:,.10g}"
    for fault in faults(row):
        judge.violated(
            fault, expected=expected, observed=f"{list(row.sent_bytes)}", unit="bytes", witness=Witness.VALUE
        )
    assert len(row.results) == len(row.gloo) == row.world_size
    judge.holds(
        expected=expected,
        observed=f"as gloo, {max(row.sent_bytes):,} on the busiest rank",
        witness=Witness.VALUE,
        unit="bytes",
        message=what,
        examples=row.world_size,
        data={"sent_bytes": list(row.sent_bytes)},
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(primitive.name, marks=claim("lessons.76", provides=[f"queue_mesh|{primitive.name}"]))
        for primitive in PRIMITIVES
    ],
)
def test_the_mesh_of_queues_gives_what_gloo_gives_for_the_bytes_of_the_formula(
    subject: Subject, judge: Judge, name: str
) -> None:
    for world_size, numel in ((4, DIVISIBLE), (3, UNEVEN)):
        _judge(judge, observe(subject.run, name, world_size, numel))
