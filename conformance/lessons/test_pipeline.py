"""Lesson 79: its chart holds all work once, and the percentage it prints is the idle share of that chart.

Both are read back from the printed text, as a reader does: a cell is a label, an idle column a dot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.expect import Comparison
from conformance.pipeline.gantt import charts
from conformance.verdict import Witness
from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.names import SCHEDULES
from impls.reference.pipeline.simulate import Timeline
from lessons.pipeline import timed
from lessons.pipeline_observed import BUBBLES, IN_CONTRACT, Observed, constants, look, observed
from lessons.pipeline_text import told, troubles

NUM_STAGES, NUM_MICROBATCHES = 4, 8
SIZES = ((NUM_STAGES, NUM_MICROBATCHES), (3, 10))
# Without overlapping pairs: how long a pair takes is a convention, and a list need not say what overlaps.
PRINTED = ("gpipe", "1f1b", "zb_h1")
USUAL = "1f1b"  # what the lesson draws when nobody says otherwise
STAGES_OF_A_RANK = {"interleaved_1f1b": 2, "zbv": 2, "dualpipev": 2}
HALF_DIGIT = 0.0005 + 1e-9  # percentages are printed with one digit behind the point, from floats

WORKS = {"forward": "the forward", "input": "the gradient of the input", "weights": "the gradients of the weights"}
ROW = re.compile(r"^rank \d+ +(\S.*)\|$", re.MULTILINE)
LABEL = re.compile(r"([FBIW])(\d+)", re.IGNORECASE)
BUBBLE = re.compile(r"^bubble: (-?[\d.]+|nan|-?inf) %", re.MULTILINE)


def _printed(subject: Subject, judge: Judge, name: str, sizes: tuple[int, int]) -> tuple[Observed, Timeline, str]:
    """What the lesson prints, and of what."""
    outcomes = subject.run(look, 1, name, *sizes)
    seen = observed(outcomes.values[0])
    timeline = timed(seen, Costs())
    if timeline is None:
        judge.violated("\n".join(troubles(seen, None)), expected="a schedule that can be drawn", outcomes=outcomes)
    return seen, timeline, "\n".join(told(seen, timeline))


def _works(row: str) -> dict[str, Counter[int]]:
    """How often a row has forward, gradient of the input and gradients of the weights of each microbatch."""
    counts = {kind: Counter[int]() for kind in "FBIW"}
    for kind, microbatch in LABEL.findall(row):
        counts[kind.upper()][int(microbatch)] += 1
    return {"forward": counts["F"], "input": counts["B"] + counts["I"], "weights": counts["B"] + counts["W"]}


def _faults(rows: Sequence[str], num_microbatches: int, times: int) -> Iterator[str]:
    """Works of a microbatch that a row does not have `times` times: once for each stage of the rank."""
    for rank, row in enumerate(rows):
        for work, counts in _works(row).items():
            for microbatch in sorted({*range(num_microbatches), *counts}):
                wanted = times if microbatch < num_microbatches else 0
                if counts[microbatch] != wanted:
                    what = f"{WORKS[work]} of microbatch {microbatch}"
                    yield f"row {rank} has {what} {counts[microbatch]} times, not {wanted}"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=claim("lessons.79", provides=[f"{IN_CONTRACT[name]}|{BUBBLES[name]}"]))
        for name in PRINTED
    ],
)
def test_the_printed_percentage_is_the_idle_share_of_the_chart(subject: Subject, judge: Judge, name: str) -> None:
    for sizes in SIZES:
        _, timeline, text = _printed(subject, judge, name, sizes)
        rows = [LABEL.sub(lambda found: "#" * len(found[0]), row) for row in ROW.findall(text)]
        assert len(rows) == sizes[0], "the chart has been cut"
        idle = Fraction(sum(row.count(".") for row in rows), sum(map(len, rows)))
        percentage = BUBBLE.findall(text)[0]
        expected = f"{float(idle):.1%}".replace("%", " %")
        judge.that(
            Comparison(
                matches=abs(float(percentage) / 100 - float(idle)) <= HALF_DIGIT,
                expected=expected,
                observed=f"{percentage} %",
            ),
            witness=Witness.VALUE,
            data=charts(simulated=timeline),
            message=f"{name} on {sizes[0]} ranks, {sizes[1]} microbatches: idle share of the printed chart",
        )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=claim("lessons.79", provides=[IN_CONTRACT[name]])) for name in SCHEDULES]
)
def test_each_row_of_the_chart_holds_the_work_of_every_microbatch_once(
    subject: Subject, judge: Judge, name: str
) -> None:
    seen, timeline, text = _printed(subject, judge, name, SIZES[0])
    if not seen.own:
        judge.not_provided(f"{seen.impl} does not offer {name}")
    rows = ROW.findall(text)
    fault = next(_faults(rows, NUM_MICROBATCHES, STAGES_OF_A_RANK.get(name, 1)), "")
    each = f"forward and backward of {NUM_MICROBATCHES} microbatches once on each stage, {NUM_STAGES} rows"
    if fault or len(rows) != NUM_STAGES:
        judge.violated(fault or f"the chart has {len(rows)} rows", expected=each, observed=fault or f"{len(rows)} rows")
    judge.holds(
        expected=each,
        observed=each,
        witness=Witness.VALUE,
        message=f"the printed chart of {name}",
        data=charts(simulated=timeline),
    )


@claim("defaults.num-stages", provides=["NUM_STAGES"])
def test_the_chart_has_four_rows_unless_told_otherwise(subject: Subject, judge: Judge) -> None:
    usual = subject.run(constants, 1).values[0]
    judge.expect(usual["num_stages"], NUM_STAGES, message="NUM_STAGES")
    _, _, text = _printed(subject, judge, USUAL, (usual["num_stages"], usual["num_microbatches"]))
    judge.expect(len(ROW.findall(text)), NUM_STAGES, message="rows of the printed chart", unit="rows")


@claim("defaults.num-microbatches", provides=["NUM_MICROBATCHES"])
def test_each_row_has_eight_forwards_and_eight_backwards_unless_told_otherwise(subject: Subject, judge: Judge) -> None:
    usual = subject.run(constants, 1).values[0]
    judge.expect(usual["num_microbatches"], NUM_MICROBATCHES, message="NUM_MICROBATCHES")
    _, _, text = _printed(subject, judge, USUAL, (usual["num_stages"], usual["num_microbatches"]))
    cells = [[works["forward"].total(), works["input"].total()] for works in map(_works, ROW.findall(text))]
    expected = [[NUM_MICROBATCHES, NUM_MICROBATCHES]] * len(cells)
    judge.expect(cells, expected, message="forward and backward cells of each row of the printed chart")
