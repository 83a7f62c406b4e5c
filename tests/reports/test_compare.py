"""What became of each result between two reports, and the exit status that follows."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.verdict import Verdict
from reports import build, compare_text
from reports.__main__ import main
from reports.compare import Kind, compare, kind
from tests.reports import sample

Report = dict[str, Any]


@pytest.fixture
def report() -> Report:
    return build.build(sample.record())


def turned(report: Report, verdict: Verdict, claim: str = "loop.same-init", impl: str = "mine") -> Report:
    """The same run, but for one result."""
    return with_results(
        report,
        [
            {**result, "verdict": verdict.value} if (result["claim"], result["impl"]) == (claim, impl) else result
            for result in report["results"]
        ],
    )


def with_results(report: Report, results: list[Report]) -> Report:
    summary: Report = {info["name"]: {} for info in report["impls"]}
    for result in results:
        counts = summary[result["impl"]]
        counts[result["verdict"]] = counts.get(result["verdict"], 0) + 1
    count = len(results)
    return {**copy.deepcopy(report), "results": results, "summary": summary, "collected": count, "reported": count}


def without(report: Report, claim: str) -> Report:
    return with_results(report, [result for result in report["results"] if result["claim"] != claim])


def command(tmp_path: Path, old: Report, new: Report, *options: str) -> int:
    for name, report in (("old", old), ("new", new)):
        (tmp_path / f"{name}.json").write_text(build.dumps(report), encoding="utf-8")
    return main(["compare", str(tmp_path / "old.json"), str(tmp_path / "new.json"), *options])


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (Verdict.HOLDS, Verdict.HOLDS, Kind.SAME),
        (Verdict.HOLDS, Verdict.VIOLATED, Kind.REGRESSED),
        (Verdict.HOLDS, Verdict.BLOCKED, Kind.REGRESSED),
        (Verdict.HOLDS, Verdict.NOT_PROVIDED, Kind.REGRESSED),
        (Verdict.HOLDS, Verdict.REFUSES, Kind.REGRESSED),
        (Verdict.NOT_PROVIDED, Verdict.CRASHES, Kind.REGRESSED),
        (Verdict.HOLDS, Verdict.INCONCLUSIVE, Kind.CHANGED),
        (Verdict.VIOLATED, Verdict.HOLDS, Kind.FIXED),
        (Verdict.BLOCKED, Verdict.HOLDS, Kind.FIXED),
        (Verdict.VIOLATED, Verdict.NOT_PROVIDED, Kind.CHANGED),
        (Verdict.VIOLATED, Verdict.INCONCLUSIVE, Kind.CHANGED),
        (Verdict.VIOLATED, Verdict.HANGS, Kind.STILL_FAILING),
        (Verdict.NOT_PROVIDED, Verdict.HOLDS, Kind.NOW_HOLDS),
        (Verdict.INCONCLUSIVE, Verdict.HOLDS, Kind.NOW_HOLDS),
        (Verdict.HOLDS, Verdict.LOST, Kind.NOT_RUN_NOW),
        (Verdict.VIOLATED, Verdict.SUITE_ERROR, Kind.NOT_RUN_NOW),
        (Verdict.LOST, Verdict.VIOLATED, Kind.CHANGED),
        (Verdict.LOST, Verdict.LOST, Kind.STILL_FAILING),
    ],
)
def test_what_became_of_a_result(before: Verdict, now: Verdict, expected: Kind) -> None:
    assert kind(before.value, now.value) is expected


PAIRS = [(before, now) for before in Verdict for now in Verdict]


def test_only_what_is_seen_to_hold_or_is_declared_counts_as_mended() -> None:
    mended = {now for before, now in PAIRS if kind(before.value, now.value) in (Kind.FIXED, Kind.NOW_HOLDS)}
    assert mended == {Verdict.HOLDS, Verdict.DEVIATES, Verdict.REFUSES}


def test_whatever_passed_and_is_in_red_has_regressed() -> None:
    red = (Verdict.VIOLATED, Verdict.HANGS, Verdict.CRASHES, Verdict.BLOCKED)
    assert {kind(before.value, now.value) for before, now in PAIRS if before.is_passing and now in red} == {
        Kind.REGRESSED
    }


def test_a_report_beside_itself(report: Report) -> None:
    found = compare(report, report)
    assert {change.kind for change in found.changes} == {Kind.SAME, Kind.STILL_FAILING}
    assert (found.environment, found.exit_status) == ((), 0)


def test_the_exit_status_tells_a_regression(report: Report, tmp_path: Path) -> None:
    assert command(tmp_path, report, turned(report, Verdict.VIOLATED)) == 1
    assert command(tmp_path, turned(report, Verdict.VIOLATED), report) == 0


def test_a_regression_is_shown_with_what_was_seen_and_how_to_see_it_again(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command(tmp_path, report, turned(report, Verdict.VIOLATED))
    text = capsys.readouterr().out
    assert "REGRESSED (1)" in text
    assert "holds -> violated" in text
    assert "pytest --impl=mine --claim='loop.same-init'" in text


def test_a_result_that_the_new_run_lost_is_no_success_and_no_regression(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path, report, turned(report, Verdict.LOST)) == 2
    assert "lost in NEW: run these again" in " ".join(capsys.readouterr().out.split())


def test_a_claim_that_was_not_chosen_is_not_run_and_a_case_that_is_gone_is_removed(report: Report) -> None:
    one_case_less = with_results(
        report, [r for r in report["results"] if (r["claim"], r["case"]) != ("collectives.ring.bytes", "world_size=2")]
    )
    for run, expected in (
        ({"whole": True}, Kind.REMOVED),
        ({"whole": False}, Kind.NOT_RUN_NOW),
        ({}, Kind.NOT_RUN_NOW),
    ):
        new = {**one_case_less, "run": {**report["run"], **run}}
        assert {c.kind for c in compare(report, new).changes if not c.now} == {expected}
    narrowed = {**without(report, "loop.mean"), "run": {**report["run"], "whole": True}}
    assert {c.kind for c in compare(report, narrowed).changes if not c.now} == {Kind.NOT_RUN_NOW}


def test_a_new_case_is_added(report: Report) -> None:
    assert {c.kind for c in compare(without(report, "loop.mean"), report).changes if not c.before} == {Kind.ADDED}


def test_what_differs_around_the_runs_comes_before_the_results(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = turned(report, Verdict.VIOLATED)
    new["environment"] = {**report["environment"], "torch": "2.14.0"}
    command(tmp_path, report, new)
    text = capsys.readouterr().out
    assert " ".join(text[: text.index("REGRESSED")].split()).count("torch 2.13.0+cpu -> 2.14.0") == 1


def renamed(report: Report, old: str, new: str) -> Report:
    return {
        **report,
        "impls": [{**info, "name": new} if info["name"] == old else info for info in report["impls"]],
        "summary": {new if name == old else name: counts for name, counts in report["summary"].items()},
        "results": [{**result, "impl": new} if result["impl"] == old else result for result in report["results"]],
    }


def only(report: Report, impl: str) -> Report:
    kept = {**report, "impls": [info for info in report["impls"] if info["name"] == impl]}
    return with_results(kept, [result for result in report["results"] if result["impl"] == impl])


def test_a_renamed_file_is_compared_with_what_it_replaces(report: Report) -> None:
    old = only(report, "mine")
    found = compare(old, renamed(turned(old, Verdict.VIOLATED), "mine", "mine_v2"))
    assert found.names == {"mine_v2": "mine"}
    assert [(c.impl, c.claim) for c in found.of(Kind.REGRESSED)] == [("mine_v2", "loop.same-init")]


def test_a_renamed_one_among_several_is_said_on_the_command_line(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = renamed(turned(report, Verdict.VIOLATED), "mine", "mine_v2")
    assert command(tmp_path, report, new) == 0
    assert "only in NEW, not compared: mine_v2" in capsys.readouterr().out
    assert command(tmp_path, report, new, "--impl=mine=mine_v2") == 1


def test_nothing_in_common_is_not_comparable_and_the_next_step_is_said(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = renamed(renamed(renamed(report, "reference", "one"), "torch", "another"), "mine", "third")
    assert command(tmp_path, report, new) == 2
    assert "--impl OLD_NAME=NEW_NAME" in capsys.readouterr().out


def test_no_claim_in_common_is_not_comparable(report: Report, tmp_path: Path) -> None:
    half = [result for result in report["results"] if result["claim"] == "loop.mean"]
    assert command(tmp_path, with_results(report, half), without(report, "loop.mean")) == 2


def test_failure_modes_alone_can_be_compared(report: Report) -> None:
    only_suite = only(report, "suite")
    found = compare(only_suite, turned(only_suite, Verdict.SUITE_ERROR, "trouble.missing-broadcast", "suite"))
    assert found.trouble == ""
    assert [change.claim for change in found.of(Kind.NOT_RUN_NOW)] == ["trouble.missing-broadcast"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--impl=mine"], "is not OLD_NAME=NEW_NAME"),
        (["--impl=nobody=mine"], "OLD has no implementation 'nobody'. It has: reference, torch, mine"),
        (["--impl=mine=nobody"], "NEW has no implementation 'nobody'"),
    ],
)
def test_a_name_that_does_not_exist_is_told(
    report: Report, tmp_path: Path, options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path, report, report, *options) == 2
    assert told in capsys.readouterr().err


def test_a_file_that_is_no_report_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
    assert main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 2
    captured = capsys.readouterr()
    assert "not a report of Lockstep" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("room", [40, 80, 120])
def test_the_text_keeps_to_the_width_but_for_commands(report: Report, room: int) -> None:
    text = compare_text.text(compare(report, turned(report, Verdict.VIOLATED)), room)
    assert all(len(line) <= room or "rerun" in line for line in text.splitlines())


def test_hostile_names_are_inert(report: Report) -> None:
    old = renamed(report, "mine", sample.HOSTILE)
    new = turned(old, Verdict.VIOLATED, impl=sample.HOSTILE)
    text = compare_text.text(compare(old, new), 120)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_page_that_cannot_be_written_costs_neither_the_text_nor_a_report(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path, report, report, f"--html={tmp_path}") == 2
    captured = capsys.readouterr()
    assert "no regression" in captured.out
    assert "could not be written" in captured.err
    assert command(tmp_path, report, report, f"--html={tmp_path / 'old.json'}") == 2
    assert "would be replaced" in capsys.readouterr().err
    assert (tmp_path / "old.json").read_text(encoding="utf-8") == build.dumps(report)


def test_the_command_ends_as_any_other_tool_when_nobody_reads(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(build.dumps(report), encoding="utf-8")
    command = f"{sys.executable} -m reports compare {path} {path} --all | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.startswith("OLD  2025-03-14")
    assert done.stderr == ""


def test_what_became_of_a_case_with_a_long_name_is_still_read(report: Report) -> None:
    case = "test_parameters_gradients_and_optimizer_state_are_split_over_all_ranks_of_the_world[2]"
    old, new = copy.deepcopy(report), turned(report, Verdict.VIOLATED)
    for one in (old, new):
        next(r for r in one["results"] if r["claim"] == "loop.same-init" and r["impl"] == "mine")["case"] = case
    assert "loop.same-init  holds -> violated" in compare_text.text(compare(old, new), 80)
