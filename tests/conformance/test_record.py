"""The record: what was planned is in it, whatever the workers left behind."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from conformance import journal, record
from conformance.checks import Description
from conformance.options import Chosen
from conformance.verdict import Claim, Result, Text, Tier, Truth, Verdict

TEXT = Text(en="said", fa="گفته")
MINE = Chosen(name="mine", spec="mine", path="/mine.py", sha256="0")


def _claim(name: str, *needs: str) -> Claim:
    return Claim(
        id=name,
        section="s",
        text=TEXT,
        truth=Truth.EXACT,
        statement=TEXT,
        source="here",
        line=1,
        needs=needs,
        hint=TEXT,
    )


CLAIMS = {claim.id: claim for claim in (_claim("a"), _claim("b", "a"), _claim("c", "b"), _claim("d"))}


def _planned(claim: str, tier: Tier = Tier.CORE) -> journal.Planned:
    return journal.Planned(nodeid=f"{claim}-{tier}", claim=claim, case="case", tier=tier, impl="mine", rerun="pytest")


def _gathered(*found: tuple[str, Tier, Verdict]) -> journal.Gathered:
    gathered = journal.Gathered()
    for claim, tier, verdict in found:
        planned = _planned(claim, tier)
        gathered.planned[planned.nodeid] = planned
        if verdict is not Verdict.LOST:
            gathered.results[planned.nodeid] = Result(claim=claim, case="case", tier=tier, impl="mine", verdict=verdict)
    return gathered


def _assembled(gathered: journal.Gathered, description: Description | None = None, unchecked: tuple[str, ...] = ()):
    run = record.Run(
        impls=[MINE],
        descriptions={} if description is None else {"mine": description},
        claims=CLAIMS,
        unchecked=unchecked,
        is_whole=True,
        about={},
        rootpath=Path("/"),
    )
    made = record.assemble(gathered, run)
    return made, {result.claim: result for result in made.results}


def test_planned_check_without_result_is_lost_and_says_whether_it_was_begun():
    gathered = _gathered(("a", Tier.CORE, Verdict.LOST), ("d", Tier.CORE, Verdict.LOST))
    gathered.started.add("a-core")
    made, by_claim = _assembled(gathered)
    assert made.collected == len(made.results) == 2
    assert by_claim["a"].message == record.DIED
    assert by_claim["d"].message == record.NEVER
    assert not record.is_passing(made)


def test_broken_need_blocks_over_claims_in_between_and_is_named():
    _, by_claim = _assembled(_gathered(("a", Tier.CORE, Verdict.VIOLATED), ("c", Tier.CORE, Verdict.CRASHES)))
    assert by_claim["c"].verdict is Verdict.BLOCKED
    assert by_claim["c"].blocked_by == "a"
    assert by_claim["a"].verdict is Verdict.VIOLATED


@pytest.mark.parametrize("verdict", [Verdict.HOLDS, Verdict.NOT_PROVIDED, Verdict.INCONCLUSIVE, Verdict.SUITE_ERROR])
def test_only_broken_results_are_blocked(verdict):
    _, by_claim = _assembled(_gathered(("a", Tier.CORE, Verdict.VIOLATED), ("b", Tier.CORE, verdict)))
    assert by_claim["b"].verdict is verdict


def test_need_broken_in_an_exotic_case_does_not_excuse_a_core_failure():
    _, by_claim = _assembled(_gathered(("a", Tier.EXOTIC, Verdict.VIOLATED), ("b", Tier.CORE, Verdict.VIOLATED)))
    assert by_claim["b"].verdict is Verdict.VIOLATED


@pytest.mark.parametrize(("of_need", "found"), [(Verdict.VIOLATED, Verdict.VIOLATED), (Verdict.HANGS, Verdict.BLOCKED)])
def test_case_that_cannot_see_wrong_values_of_a_need_is_blocked_by_its_stop_only(of_need, found):
    gathered = _gathered(("a", Tier.CORE, of_need), ("b", Tier.CORE, Verdict.VIOLATED))
    gathered.planned["b-core"] = dataclasses.replace(gathered.planned["b-core"], despite=("a",))
    _, by_claim = _assembled(gathered)
    assert by_claim["b"].verdict is found


@pytest.mark.parametrize(("of_need", "found"), [(Verdict.VIOLATED, Verdict.VIOLATED), (Verdict.HANGS, Verdict.BLOCKED)])
def test_case_that_stands_alone_blocks_others_by_its_stop_only(of_need, found):
    gathered = _gathered(("a", Tier.CORE, of_need), ("b", Tier.CORE, Verdict.VIOLATED))
    gathered.planned["a-core"] = dataclasses.replace(gathered.planned["a-core"], alone=True)
    _, by_claim = _assembled(gathered)
    assert by_claim["b"].verdict is found


def test_implementation_that_cannot_be_loaded_blocks_nothing():
    description = Description(name="mine", spec="mine", verdict=Verdict.CRASHES, reason="SystemExit")
    gathered = _gathered(("a", Tier.CORE, Verdict.CRASHES), ("b", Tier.CORE, Verdict.CRASHES))
    made, by_claim = _assembled(gathered, description)
    assert by_claim["b"].verdict is Verdict.CRASHES
    assert made.impls[0].error == "SystemExit"


@pytest.mark.parametrize(("seen", "verdict"), [(Verdict.HOLDS, Verdict.VIOLATED), (Verdict.DEVIATES, Verdict.DEVIATES)])
def test_declared_deviation_is_stale_only_when_no_case_shows_it(seen, verdict):
    description = Description(name="mine", spec="mine", deviates={"a": {"reason": "known"}})
    _, by_claim = _assembled(_gathered(("a", Tier.CORE, seen)), description)
    assert by_claim["a"].verdict is verdict


def test_claim_without_a_check_is_a_row_of_every_implementation():
    made, by_claim = _assembled(_gathered(("a", Tier.CORE, Verdict.HOLDS)), unchecked=("d",))
    assert by_claim["d"].verdict is Verdict.NOT_CHECKED
    assert made.collected == len(made.results) == 2
    assert record.is_passing(made)


def test_journal_with_a_torn_last_line_keeps_the_rest(tmp_path):
    kept = journal.Journal(tmp_path, "gw0")
    planned = _planned("a")
    result = Result(
        claim="a", case="case", tier=Tier.CORE, impl="mine", verdict=Verdict.HOLDS, data={"x": float("nan")}
    )
    kept.planned([planned])
    kept.started(planned.nodeid)
    kept.result(planned.nodeid, result, world_sizes={2, 3}, story=None)
    kept.close()
    (path,) = tmp_path.glob("*.jsonl")
    with path.open("a") as file:
        file.write('{"kind": "result", "nodeid": "a-co')
    gathered = journal.gather(journal.read(tmp_path))
    assert gathered.results["a-core"].verdict is Verdict.HOLDS
    assert gathered.results["a-core"].data == {"x": "nan"}
    assert gathered.results["a-core"].world_sizes == (2, 3)
    assert gathered.world_sizes == {2, 3}
    assert list(gathered.planned) == ["a-core"]


def test_later_result_of_a_check_overrules_the_earlier():
    kept = journal.Journal(None, "main")
    for verdict in (Verdict.HOLDS, Verdict.SUITE_ERROR):
        result = Result(claim="a", case="case", tier=Tier.CORE, impl="mine", verdict=verdict)
        kept.result("a-core", result, world_sizes=set(), story=None)
    kept.close()
    assert journal.gather(kept.kept).results["a-core"].verdict is Verdict.SUITE_ERROR


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Expected parameter `tensor` of type torch.Tensor\n  but got <class 'NoneType'> instead.",
            "A gradient is None",
        ),
        ("Global rank 0 is not part of group <TracedGroup object at 0x7f>", "dist.get_global_rank(group, 0)"),
    ],
)
def test_a_crash_is_told_by_the_words_of_its_exception_before_the_usual_hint(said: str, told: str) -> None:
    gathered = _gathered(("a", Tier.CORE, Verdict.CRASHES), ("d", Tier.CORE, Verdict.CRASHES))
    first, _ = gathered.results
    message = f"rank 0 raised TypeError at x.py:3 in step: {said}"
    gathered.results[first] = dataclasses.replace(gathered.results[first], message=message)
    _, by_claim = _assembled(gathered)
    usual = record.HINTS[Verdict.CRASHES]
    hint = by_claim["a"].hint
    assert hint is not None
    assert told in hint.en
    assert hint.en.endswith(usual.en)
    assert by_claim["d"].hint == usual


def test_version_of_a_suite_that_is_another_users_is_known_as_in_a_container(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message=m"], check=True)
    subprocess.run([*git, "tag", "v1", "--annotate", "--message=m"], check=True)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert record._suite(tmp_path)["git"] == "v1"
