"""What the teacher gets: a CSV that nobody is missing from, and a matrix of hand-ins by claims."""

from __future__ import annotations

import csv

from conformance.grading.matrix import merge
from reports import build
from tests.reports import sample


def test_grade_book_has_everybody_and_the_matrix_has_the_claims(tmp_path):
    report = tmp_path / "hand-ins" / "ana" / "report.json"
    report.parent.mkdir(parents=True)
    report.write_text(build.dumps(build.build(sample.record())), encoding="utf-8")
    assert merge([report], {"ana": ["late"], "zoe.zip": ["not read"]}, tmp_path, tmp_path) == 0
    with (tmp_path / "grades.csv").open(newline="", encoding="utf-8") as file:
        rows = [(row["hand_in"], row["remarks"]) for row in csv.DictReader(file)]
    assert dict(rows) == {"ana": "late", "zoe.zip": "not read"}
    with (tmp_path / "class" / "class.csv").open(newline="", encoding="utf-8") as file:
        assert "collectives.agreement" in next(csv.reader(file))
