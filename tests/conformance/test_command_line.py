"""What is misspelt or cannot be written is told before any worker starts, with exit status 4."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = """
from conformance.checks import claim

@claim("collectives.ring.steps")
def test_fine(judge):
    judge.expect(1, 1)

@claim("loop.mean")
def test_other(judge):
    judge.expect(1, 1)
"""


@pytest.fixture(scope="module")
def place(make_place):
    files = {
        "test_checks.py": CHECK,
        "broken.py": "def all_reduce(tensor:\n",
        "nothing.py": "x = 1\n",
        "notes.txt": "not Python\n",
        "empty/notes.txt": "no module\n",
        "mine.py": "def all_reduce(tensor):\n    return tensor\n",
    }
    return make_place(files)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--impl=referense"], ["referense", "reference", "Did you mean"]),
        (["--impl=no/such.py"], ["no/such.py"]),
        (["--impl=empty"], ["empty", "no Python module"]),
        (["--impl=notes.txt"], ["notes.txt", "not a Python file"]),
        (["--impl=broken.py"], ["broken.py:1"]),
        (["--impl=nothing.py"], ["nothing.py", "none of the names"]),
        (["--claim=colectives.*"], ["colectives.*", "--list-claims", "collectives.*"]),
        (["--scenario=no-such-thing"], ["no-such-thing", "--list-scenarios"]),
        (["--report=notes.txt/below"], ["notes.txt/below", "--report=FOLDER"]),
        (["--mutants=some"], ["some"]),
        (["--explain"], ["--scenario=NAME", "pipeline-send-send"]),
        (["--hypothesis-profile=thorou"], ["thorou", "'thorough'"]),
        (["--impl=mutants/ddp_divide_by_two"], ["mutants/ddp_divides_by_two"]),
    ],
    ids=lambda value: value[0],
)
def test_bad_option_ends_with_status_4_before_workers_start(place, options, told):
    done = place.run("-n", "2", *options)
    assert done.status == 4, done.text
    assert "workers" not in done.text
    assert [word for word in told if word not in done.text] == []
    assert "Traceback" not in done.text


def test_who_only_asks_does_not_wait_for_torch():
    asked = "import sys, fixtures.plugin, conformance.plugin, reports.plugin; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0


def test_claim_pattern_chooses_checks_and_says_what_is_left_out(place):
    done = place.run("--claim=loop.m*")
    assert done.status == 0, done.text
    assert [(r["claim"], r["verdict"]) for r in done.record["results"]] == [("loop.mean", "holds")]
    assert "1 deselected" in done.text


def test_claims_without_a_check_are_not_checked_and_pass(place):
    done = place.run("--claim=trouble.*")  # checked where scenarios are parameters, which are not in this folder
    assert done.status == 0, done.text
    assert {r["verdict"] for r in done.record["results"]} == {"not-checked"}
    assert done.record["collected"] == len(done.record["results"]) == 8


def test_keyword_and_node_id_choose_without_not_checked_rows(place):
    by_keyword = place.run("-k", "fine")
    by_node = place.run("test_checks.py::test_fine")
    assert len(by_keyword.record["results"]) == len(by_node.record["results"]) == 1
    assert by_keyword.status == by_node.status == 0


def test_listing_claims_shows_every_claim_and_runs_nothing(place):
    done = place.run("--list-claims")
    assert done.status == 0
    assert "collectives.ring.bytes" in done.text
    assert "test session starts" not in done.text


def test_listing_scenarios_runs_nothing(place):
    done = place.run("--list-scenarios")
    assert done.status == 0
    assert "scenarios" in done.text


def test_report_folder_that_does_not_exist_is_made(place):
    assert place.run("--report=deep/below", "-k", "fine").status == 0
    assert (place.folder / "deep" / "below").is_dir()


def test_report_folder_is_told_in_its_shortest_form(place):
    done = place.run("--report=deep/../deep/below", "-k", "fine")
    assert f"report in {place.folder}/deep/below" in done.text


def test_section_chooses_its_claims_whatever_their_ids(make_place):
    another = CHECK.replace("collectives.ring.steps", "calls.bubble-fraction")
    place = make_place({"test_checks.py": CHECK, "test_others.py": another})
    done = place.run("--claim=loop")
    assert {result["claim"] for result in done.record["results"]} == {"loop.mean", "calls.bubble-fraction"}
    assert not any(result["claim"].startswith("collectives") for result in done.record["results"])


def test_two_files_of_one_name_are_both_shown(make_place):
    check = CHECK.replace("judge):", "judge, subject):")
    impl = "def all_reduce(tensor):\n    return tensor\n"
    place = make_place({"test_checks.py": check, "a/ddp.py": impl, "b/ddp.py": impl})
    done = place.run("--impl=a/ddp.py", "--impl=b/ddp.py", "-k", "fine")
    assert done.status == 0, done.text
    assert [info["name"] for info in done.record["impls"]] == ["a/ddp.py", "b/ddp.py"]


def test_a_hand_in_that_is_called_suite_is_not_the_suite(make_place):
    check = CHECK.replace("judge):", "judge, subject):")
    place = make_place({"test_checks.py": check, "suite/__init__.py": "def all_reduce(tensor):\n    return tensor\n"})
    done = place.run("--impl=suite", "-k", "fine")
    assert done.status == 0, done.text
    (info,) = done.record["impls"]
    assert info["name"] == info["path"] != "suite"


@pytest.mark.parametrize(
    ("marker", "told"),
    [("", "names no claim"), ('@claim("collectives.ring.stepps")', "collectives.ring.steps")],
    ids=["without a claim", "with an unknown claim"],
)
def test_check_is_refused(make_place, marker, told):
    text = f"from conformance.checks import claim\n{marker}\ndef test_it(judge):\n    judge.expect(1, 1)\n"
    done = make_place({"test_checks.py": text}).run()
    assert done.status == 2
    assert told in done.text


def test_tests_that_are_no_checks_make_no_record(make_place):
    done = make_place({"test_plain.py": "def test_plain():\n    pass\n"}).run()
    assert done.status == 0
    assert done.record is None


def test_file_is_shown_by_its_name_and_rerun_by_its_path(make_place):
    check = CHECK.replace("judge):", "judge, subject):")
    place = make_place({"test_checks.py": check, "a/ddp.py": "def all_reduce(tensor):\n    return tensor\n"})
    done = place.run("--impl=a/ddp.py", "-k", "fine")
    (result,) = done.record["results"]
    assert result["impl"] == "ddp.py"
    assert result["rerun"].endswith("--impl=a/ddp.py --report=reports/rerun")


def test_a_scenario_imports_no_file_beside_its_own_unless_that_is_named(make_place):
    place = make_place({"test_beside.py": "raise ValueError('was imported')\n"})
    scenario = ("--scenario=pipeline-send-send", "--collect-only")
    assert "was imported" not in place.run(*scenario).text
    assert "was imported" in place.run(*scenario, "test_beside.py").text
