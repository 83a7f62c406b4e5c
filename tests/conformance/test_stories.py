"""Failure modes that no claim is about: told in the terminal and the record, and in nobody's score."""

from __future__ import annotations

import pytest

FILES = {
    "test_checks.py": """
import pytest
from conformance.checks import claim, scenario
from conformance.verdict import ScenarioStory, Text, Verdict, Witness

SAID = Text(en="said", fa="گفته")

def _story(name, *evidence):
    texts = dict.fromkeys(("title", "symptom", "diagnosis", "cure"), SAID)
    rerun = f"pytest --scenario={name}"
    return ScenarioStory(id=name, claim="", verdict=Verdict.HOLDS, evidence=evidence, rerun=rerun, **texts)

@scenario("is-shown")
def test_shown(tell):
    tell(_story("is-shown", "fault: seen", "cure: helps"))

@scenario("is-not-shown")
def test_not_shown(tell):
    tell(_story("is-not-shown", "fault: seen"))
    assert False, "the cure does not help"

@claim("loop.mean")
def test_of_a_claim(subject, judge):
    judge.holds(expected=1, observed=1, witness=Witness.VALUE)
""",
    "mine.py": "def all_reduce(tensor):\n    return tensor\n",
}


@pytest.fixture(scope="module")
def place(make_place):
    return make_place(FILES)


def _checked(done):
    """The claims that were checked, with their verdicts."""
    results = done.record["results"]
    return {result["claim"]: result["verdict"] for result in results if result["verdict"] != "not-checked"}


def test_one_that_is_shown_is_told_and_counts_for_no_implementation(place):
    done = place.run("-n", "0", "-k", "test_shown")
    assert done.status == 0, done.text
    (story,) = done.record["scenarios"]
    assert (story["id"], story["verdict"], story["claim"]) == ("is-shown", "holds", "")
    assert done.record["results"] == []
    assert "nothing was examined" not in done.text


@pytest.mark.parametrize("workers", ["0", "2"])
def test_one_that_is_not_shown_fails_the_run_as_the_suites_own_error(place, workers):
    done = place.run("-n", workers)
    assert done.status == 1
    verdicts = {story["id"]: story["verdict"] for story in done.record["scenarios"]}
    assert verdicts == {"is-shown": "holds", "is-not-shown": "suite-error"}
    assert "the cure does not help" in done.text
    assert _checked(done) == {"loop.mean": "holds"}
    assert done.record["run"]["exit_status"] == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], {"is-shown", "is-not-shown"}),
        (["--scenario=all"], {"is-shown", "is-not-shown"}),
        (["--claim=loop.mean"], set()),
        (["--impl=mine.py"], set()),
        (["--impl=mine.py", "--scenario=all"], {"is-shown", "is-not-shown"}),
    ],
    ids=["plain", "all", "claim", "other", "other-all"],
)
def test_they_are_reproduced_in_the_suites_own_run_and_when_asked_for(place, options, told):
    done = place.run("-n", "0", *options)
    assert {story["id"] for story in done.record["scenarios"]} == told
    assert set(_checked(done)) == (set() if "--scenario=all" in options else {"loop.mean"})


def test_explain_tells_what_was_seen_before_the_cause_and_the_cured_run_after_the_cure(place):
    done = place.run("-n", "0", "--scenario=all", "--explain", "-k", "test_shown")
    fields = ["symptom", "seen", "cause", "cure", "cured", "rerun"]
    places = [done.text.index(f"\n  {field} ") for field in fields]
    assert places == sorted(places)
    assert "cured    cure: helps" in done.text
