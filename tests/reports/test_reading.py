from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest

from conformance.verdict import SCHEMA_VERSION, Verdict
from reports import build, reading
from reports.reading import InvalidReport, UnknownVersion
from tests.reports import sample

MAJOR, MINOR = map(int, SCHEMA_VERSION.split("."))


@pytest.fixture
def report() -> dict[str, Any]:
    return build.build(sample.record())


def test_a_folder_stands_for_the_report_in_it(report: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(build.dumps(report), encoding="utf-8")
    assert reading.load(tmp_path) == report


def test_properties_of_a_newer_minor_version_are_passed_over(report: dict[str, Any]) -> None:
    report["schema_version"] = f"{MAJOR}.{MINOR + 1}"
    report["surprise"] = report["results"][0]["surprise"] = 1
    reading.validate(report)
    report["schema_version"] = SCHEMA_VERSION
    with pytest.raises(InvalidReport, match="surprise"):
        reading.validate(report)


def test_all_other_rules_are_for_a_newer_minor_version_too(report: dict[str, Any]) -> None:
    report["schema_version"] = f"{MAJOR}.{MINOR + 1}"
    report["surprise"] = 1
    report["results"][0]["verdict"] = "splendid"
    with pytest.raises(InvalidReport, match=r"results\[0\].*splendid"):
        reading.validate(report)


def test_an_older_minor_version_is_read(report: dict[str, Any]) -> None:
    report["schema_version"] = f"{MAJOR}.0"
    reading.validate(report)


@pytest.mark.parametrize(
    ("version", "told"), [(f"{MAJOR + 1}.0", "update Lockstep"), (f"{MAJOR - 1}.9", "the one that wrote it")]
)
def test_another_major_version_is_refused_by_name(report: dict[str, Any], version: str, told: str) -> None:
    report["schema_version"] = version
    with pytest.raises(UnknownVersion, match=told) as refused:
        reading.validate(report)
    assert version in str(refused.value)
    assert f"{MAJOR}.x" in str(refused.value)


@pytest.mark.parametrize("version", [None, 1, "one", "one.two", "1.0.0", "9" * 5000 + ".0"])
def test_a_file_without_a_version_is_no_report(report: dict[str, Any], version: Any) -> None:
    report["schema_version"] = version
    with pytest.raises(InvalidReport, match="not a report of Lockstep"):
        reading.validate(report)


def test_nesting_without_end_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(InvalidReport, match="is not JSON"):
        reading.load(tmp_path)


def test_bytes_that_are_no_text_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(InvalidReport, match="is not JSON"):
        reading.load(tmp_path)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "9" * 5000, "1e999", "-1.5e400"])
def test_a_number_that_json_does_not_have_is_one_sentence(tmp_path: Path, number: str) -> None:
    (tmp_path / "report.json").write_text(f'{{"schema_version": "1.0", "collected": {number}}}', encoding="utf-8")
    with pytest.raises(InvalidReport, match=r"report\.json is not JSON"):
        reading.load(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "report.json")
    with pytest.raises(InvalidReport, match="is no regular file"):
        reading.load(tmp_path)


def test_a_file_beyond_all_measure_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "report.json").open("wb") as file:
        file.truncate(reading.MAX_BYTES + 1)  # sparse
    with pytest.raises(InvalidReport, match="no report is as large"):
        reading.load(tmp_path)


def test_two_results_with_one_key_are_a_contradiction(report: dict[str, Any]) -> None:
    twin = copy.deepcopy(report["results"][0])
    report["results"].append(twin)
    report["collected"] = report["reported"] = len(report["results"])
    report["summary"][twin["impl"]][twin["verdict"]] += 1
    with pytest.raises(InvalidReport, match="two results have the key"):
        reading.validate(report)


def test_cases_that_two_checks_call_alike_get_keys_of_their_own() -> None:
    twins = tuple(sample.result("loop.step", "mine", Verdict.HOLDS, case="test_same") for _ in range(3))
    report = build.build(sample.record(extra=twins))
    reading.validate(report)
    assert [result["case"] for result in report["results"][-3:]] == ["test_same", "test_same #2", "test_same #3"]


def test_the_version_of_the_suite_is_one_that_the_schema_allows(report: dict[str, Any]) -> None:
    assert report["schema_version"] == SCHEMA_VERSION
    assert json.loads(build.dumps(report)) == report


def test_the_guide_says_what_this_version_added() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    assert f"{SCHEMA_VERSION}: " in guide
