"""What reports are measured with is what a run could leave."""

from __future__ import annotations

from benchmarks.report_programs import record
from reports import build, reading


def test_a_made_record_becomes_a_valid_report_with_every_tier_and_broken_results() -> None:
    report = build.build(record(500))
    reading.validate(report)
    assert {result["tier"] for result in report["results"]} == {"core", "contract", "exotic"}
    assert {result["verdict"] for result in report["results"]} == {"holds", "violated"}
    assert len({reading.key(result) for result in report["results"]}) == 500
