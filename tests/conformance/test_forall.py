"""Property tests draw the same cases in every run, shrink what breaks, and never run a case twice."""

from __future__ import annotations

import collections
import importlib

import pytest
from hypothesis import strategies as st

from conformance import forall
from conformance.judge import Broken, Judge, merged
from conformance.verdict import Verdict, Witness

SEED = 7


def _holds(judge: Judge, message: str = "seen") -> None:
    judge.holds(expected=1, observed=1, witness=Witness.VALUE, message=message)


def test_evidence_is_kept_once_with_all_examples_behind_it():
    judge = Judge(seed=SEED)
    judge.forall(st.integers(0, 10**6), lambda case: _holds(judge), max_examples=30)
    found = merged(judge.evidence, judge.examples_tried)
    assert found is not None
    assert len(judge.evidence) == 1
    assert found.examples == judge.examples_tried > 20


def test_same_seed_draws_the_same_cases():
    drawn: list[list[int]] = [[], []]
    for cases in drawn:
        judge = Judge(seed=SEED)
        judge.forall(st.integers(0, 10**6), cases.append, max_examples=20)
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 10


def test_what_else_is_loaded_changes_no_case(tmp_path, monkeypatch):
    (tmp_path / "full_of_constants.py").write_text(f"NUMBERS = {tuple(range(1000, 10**6, 997))}", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    drawn: list[list[int]] = [[], []]
    for cases in drawn:
        judge = Judge(seed=SEED)
        judge.forall(st.integers(0, 10**6), cases.append, max_examples=200)
        importlib.import_module("full_of_constants")
    assert drawn[0] == drawn[1]


def test_broken_case_is_shrunk_and_named():
    judge = Judge(seed=SEED)
    with pytest.raises(Broken, match=r"falsified by \(0, 42\)") as caught:
        judge.forall(st.tuples(st.integers(0, 9), st.integers(0, 1000)), lambda case: judge.at_most(case[1], 41))
    assert caught.value.verdict is Verdict.VIOLATED
    assert caught.value.evidence is not None
    assert caught.value.evidence.observed == "42"


def test_no_case_is_run_twice():
    runs: collections.Counter[int] = collections.Counter()
    judge = Judge(seed=SEED)

    def body(case: int) -> None:
        runs[case] += 1
        judge.at_most(case, 41)

    with pytest.raises(Broken):
        judge.forall(st.integers(0, 1000), body)
    broken = {case: count for case, count in runs.items() if case > 41}
    assert set(broken.values()) == {1}


def test_failure_that_comes_and_goes_is_still_reported():
    judge = Judge(seed=SEED)
    runs: list[int] = []

    def body(case: int) -> None:
        runs.append(case)
        if len(runs) == 5:
            judge.violated("once in a while")
        _holds(judge)

    with pytest.raises(Broken, match="once in a while"):
        judge.forall(st.integers(0, 10**6), body)


def test_shrinking_runs_nothing_more_when_its_time_is_used_up(monkeypatch):
    monkeypatch.setattr(forall, "SHRINK_BUDGET_S", -1.0)
    judge = Judge(seed=SEED)
    broken: list[int] = []

    def body(case: int) -> None:
        if case > 41:
            broken.append(case)
        judge.at_most(case, 41)

    with pytest.raises(Broken, match="falsified by"):
        judge.forall(st.integers(0, 1000), body)
    assert len(broken) == 1


def test_other_kind_of_failure_is_not_taken_for_the_same():
    judge = Judge(seed=SEED)

    def body(case: int) -> None:
        if case > 500:
            judge.hangs("too large")
        if case > 41:
            judge.violated("large")
        _holds(judge)

    with pytest.raises(Broken) as caught:
        judge.forall(st.integers(0, 1000), body)
    smallest = {Verdict.HANGS: "falsified by 501", Verdict.VIOLATED: "falsified by 42"}
    assert smallest[caught.value.verdict] in caught.value.message


def test_what_is_not_provided_ends_the_search_at_once():
    judge = Judge(seed=SEED)
    runs: list[int] = []

    def body(case: int) -> None:
        runs.append(case)
        judge.not_provided("there is no ring")

    with pytest.raises(Broken) as caught:
        judge.forall(st.integers(0, 1000), body)
    assert caught.value.verdict is Verdict.NOT_PROVIDED
    assert caught.value.message == "there is no ring"
    assert len(runs) == 1


def test_error_of_the_check_keeps_its_type_and_names_the_case():
    judge = Judge(seed=SEED)

    def body(case: int) -> None:
        assert case <= 41, "the check's own precondition"

    with pytest.raises(AssertionError, match="precondition") as caught:
        judge.forall(st.integers(0, 1000), body)
    assert any("falsified by 42" in note for note in caught.value.__notes__)


def test_without_shrinking_the_first_broken_case_is_told():
    judge = Judge(seed=SEED, shrink=False)
    broken: list[int] = []

    def body(case: int) -> None:
        if case > 41:
            broken.append(case)
        judge.at_most(case, 41)

    with pytest.raises(Broken) as caught:
        judge.forall(st.integers(0, 10**6), body)
    assert len(broken) == 1
    assert f"falsified by {broken[0]}" in caught.value.message
