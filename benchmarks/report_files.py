"""What report.json and the commands on it cost: making and checking one, comparing two, merging two hundred."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Ratio, benchmark, seconds
from benchmarks.report_programs import record
from reports import badge, build, compare, compare_text, markdown, merge_tables, reading, tables_html
from reports.merge import merge

HAND_INS = 200
RESULTS_OF_ONE = 1_300  # as many as a whole run has for one implementation


@benchmark("report-files")
def report_files() -> Iterator[Ratio]:
    """report.json, report.md and badge.svg of one run, as the plug-in makes and checks them."""
    for size, target in ((1_000, "<= 1"), (20_000, "<= 10")):
        made = record(size)

        def whole(made=made) -> int:
            report = build.build(made)
            reading.validate(report)
            return len("".join((build.dumps(report), markdown.render(report), badge.render(report))).encode())

        against = f"nothing; {size:,} results, {whole() / 1e6:.1f} MB"
        yield Ratio(
            name=f"report-files.{size}", value=seconds(whole, repeat=3), unit="s", against=against, target=target
        )
    report = build.build(made)
    yield Ratio(
        name="report-files.compare",
        value=seconds(lambda: compare_text.text(compare.compare(report, report), 100), repeat=3),
        unit="s",
        against="nothing; two reports of 20,000 results each",
        target="<= 5",
    )


@benchmark("merge")
def merging() -> Iterator[Ratio]:
    """A class: reading and checking every report, the matrix, the CSV and the page."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(HAND_INS):
            place = Path(folder) / f"student-{number:03}"
            place.mkdir()
            text = build.dumps(build.build(record(RESULTS_OF_ONE, run=place.name, impls=("ddp.py",))))
            (place / "report.json").write_text(text, encoding="utf-8")

        def whole() -> None:
            matrix = merge([Path(folder)])
            if len(matrix.rows) != HAND_INS or matrix.trouble:
                raise RuntimeError(f"{len(matrix.rows)} of {HAND_INS} reports were merged: {matrix.trouble[:1]}")
            merge_tables.as_csv(matrix)
            tables_html.merged(matrix)

        yield Ratio(
            name="merge.200",
            value=seconds(whole, repeat=1),
            unit="s",
            against=f"nothing; {HAND_INS} reports of {RESULTS_OF_ONE} results, {len(text) / 1e6:.1f} MB each",
            target="<= 20",
        )
