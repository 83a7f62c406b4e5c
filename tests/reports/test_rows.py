from __future__ import annotations

import dataclasses
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.verdict import Result, Text, Tier, Verdict
from reports import build, html, rows, score
from tests.reports import sample
from tests.reports.test_html import whole

Report = dict[str, Any]


def report(*extra: Result) -> Report:
    built = build.build(sample.record(extra=extra))
    build.validate(built)
    return built


def results(*given: Result) -> list[Report]:
    return build.build(sample.record(extra=given))["results"][-len(given) :]


def holds(number: int, **evidence: object) -> Result:
    rerun = f"pytest 'test_x.py::test_ring[mine-{number}]'"
    return sample.result("loop.step", "mine", case=f"test_ring[{number}]", **({"rerun": rerun} | evidence))


def test_what_was_checked_stands_before_what_was_not_in_every_section() -> None:
    for section in rows.sections(report()):
        states = [row["state"] != "checked" for row in section["rows"]]
        assert states == sorted(states), section["id"]
        assert sum(section["later"].values()) == sum(states)


def test_no_claim_is_lost_when_rows_are_put_in_order() -> None:
    shown = [row["claim"]["id"] for section in rows.sections(report()) for row in section["rows"]]
    assert sorted(shown) == sorted(claim.id for claim in sample.CLAIMS)


def test_a_claim_without_a_check_is_told_from_one_that_was_not_chosen() -> None:
    built = report()
    built["results"] = [result for result in built["results"] if not result["claim"].startswith("pipeline.")]
    states = {row["claim"]["id"]: row["state"] for section in rows.sections(built) for row in section["rows"]}
    assert states["pipeline.gpipe.bubble"] == "not-run"
    assert states["memory.adam-states"] == "open"
    assert states["loop.step"] == "checked"


def test_a_claim_without_mutants_says_why() -> None:
    page = whole(html.render(report()))
    for key, claim in (("no check yet", "collectives.ring.use"), ("not measured; run tox", "loop.step")):
        _, _, card = page.partition(f'id="claim-{claim}"')
        assert key in card.partition("</article>")[0]


def test_cases_of_one_check_that_hold_are_shown_together() -> None:
    [bundle] = rows.bundles(results(holds(2), holds(3), holds(4, expected="other", observed="other")))
    assert bundle.name == "test_ring"
    assert len(bundle.results) == 3
    assert bundle.command == "pytest 'test_x.py::test_ring[mine-2]' 'test_x.py::test_ring[mine-3]' " + (
        "'test_x.py::test_ring[mine-4]'"
    )


def test_cases_of_other_checks_tiers_and_verdicts_are_shown_apart() -> None:
    others = [
        holds(2),
        holds(3, tier=Tier.EXOTIC),
        dataclasses.replace(holds(4), case="test_tree[4]"),
        dataclasses.replace(holds(5), verdict=Verdict.NOT_PROVIDED),
    ]
    assert [len(bundle.results) for bundle in rows.bundles(results(*others))] == [1, 1, 1, 1]


@pytest.mark.parametrize("verdict", sorted(rows.LOUD))
def test_a_broken_case_is_always_shown_by_itself(verdict: str) -> None:
    broken = [dataclasses.replace(holds(number), verdict=Verdict(verdict)) for number in (2, 3)]
    assert [len(bundle.results) for bundle in rows.bundles(results(*broken))] == [1, 1]


def test_the_card_has_the_worlds_and_the_smallest_failing_example() -> None:
    message = "a chunk is missing\n  rank 1: 3 of 4\nfalsified by (3, 4) (example 7 and smaller)"
    broken = sample.result("loop.step", "mine", Verdict.VIOLATED, case="drawn", message=message, world_sizes=(2, 3))
    page = whole(html.render(report(broken)))
    assert 'Smallest failing example</span></p><pre dir="ltr" tabindex="0">(3, 4) (example 7 and smaller)</pre>' in page
    assert '<pre dir="ltr" tabindex="0">  rank 1: 3 of 4</pre>' in page
    assert '<b dir="ltr">2, 3</b>' in page


def test_a_case_with_a_timeline_keeps_its_own_link() -> None:
    page = whole(html.render(report(holds(2, timeline="a.trace.json"), holds(3, timeline="b.trace.json"))))
    assert 'href="traces/a.trace.json"' in page
    assert 'href="traces/b.trace.json"' in page


def test_commands_that_would_be_too_long_together_are_one() -> None:
    many = [holds(number) for number in range(100)]
    [bundle] = rows.bundles(results(*many))
    assert bundle.command == many[0].rerun


def test_options_of_all_cases_are_written_once_and_other_options_keep_cases_apart() -> None:
    rerun = "pytest 'test_x.py::test_ring[{}]' --impl='my ddp.py' --report=reports/rerun"
    [bundle] = rows.bundles(results(*(holds(n, rerun=rerun.format(n)) for n in (2, 3))))
    assert bundle.command == (
        "pytest 'test_x.py::test_ring[2]' 'test_x.py::test_ring[3]' '--impl=my ddp.py' --report=reports/rerun"
    )
    [bundle] = rows.bundles(results(holds(2, rerun=rerun.format(2)), holds(3, rerun="pytest x --impl=other")))
    assert bundle.command == rerun.format(2)


def test_a_command_for_several_cases_is_one_that_pytest_takes(tmp_path: Path) -> None:
    cases = [
        f"'conformance/choose/test_memory.py::{case}[reference]'"
        for case in ("test_what_fits_on_a_device_is_replicated", "test_activations_count_as_well")
    ]
    rerun = f"pytest {{}} --report={tmp_path}"
    [bundle] = rows.bundles(results(*(holds(n, rerun=rerun.format(case)) for n, case in enumerate(cases))))
    command = [sys.executable, "-m", *shlex.split(bundle.command), "--collect-only", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("[reference]") == 2


def test_a_command_with_an_open_quote_is_kept_as_it_is() -> None:
    [bundle] = rows.bundles(results(holds(1, rerun="pytest 'odd"), holds(2, rerun="pytest 'odd")))
    assert bundle.command == "pytest 'odd"


def test_many_cases_that_hold_cost_the_page_little_and_the_json_keeps_them() -> None:
    many = [holds(number, message="the same bits on every rank") for number in range(500)]
    built = report(*many)
    assert len(whole(html.render(built))) - len(whole(html.render(report()))) < 500 * 300
    assert len([result for result in built["results"] if result["case"].startswith("test_ring[")]) == 500


def test_the_hint_of_a_result_is_shown_and_not_that_of_its_claim() -> None:
    generic = Text(en="Read the traceback of the first rank.", fa="ردِ نخستین رتبه را بخوانید.")
    crash = sample.result("collectives.ring.bytes", "torch", Verdict.CRASHES, case="a", hint=generic)
    again = dataclasses.replace(crash, case="b")
    built = report(crash, again)
    page = whole(html.render(built))
    own = next(claim.hint for claim in sample.CLAIMS if claim.id == "collectives.ring.bytes")
    assert page.count(generic.en) == 1
    assert own.en not in page


def test_each_hint_names_the_verdicts_that_it_is_for() -> None:
    crash, violation = Text(en="crash", fa="-"), Text(en="off by N", fa="-")
    broken = results(
        sample.result("loop.step", "mine", Verdict.CRASHES, case="a", hint=crash),
        sample.result("loop.step", "mine", Verdict.HANGS, case="b", hint=crash),
        sample.result("loop.step", "mine", Verdict.VIOLATED, case="c", hint=violation),
        holds(2, hint=violation),
    )
    assert [(names, text["en"]) for names, text in rows.hints(broken)] == [
        (["crashes", "hangs"], "crash"),
        (["violated"], "off by N"),
    ]


def test_ranks_that_end_alike_are_told_once() -> None:
    def rank(number: int, why: str) -> Report:
        return {"rank": number, "ending": "raised", "detail": f"rank {number} raised {why}", "output": ""}

    alike = rows.ranks_alike([rank(0, "KeyError"), rank(1, "KeyError"), rank(2, "OSError at rank 1")])
    assert [numbers for numbers, _ in alike] == [[0, 1], [2]]


def test_what_is_broken_is_listed_with_every_bad_verdict_and_no_good_one() -> None:
    crash = sample.result("loop.same-init", "mine", Verdict.CRASHES, case="a")
    wrong = [sample.result("loop.same-init", "mine", Verdict.VIOLATED, case=case, tier=Tier.EXOTIC) for case in "bc"]
    entries = {entry.claim["id"]: entry for entry in rows.broken(rows.sections(report(crash, *wrong)))}
    assert entries["loop.same-init"].counts == (("crashes", 1), ("violated", 2))
    assert entries["loop.same-init"].verdict == "crashes"
    assert "loop.mean" in entries
    assert "faq.mean-not-sum" not in entries  # the same fact under another name
    assert {entry.verdict for entry in entries.values()} <= score.ALARMING


def test_what_is_blocked_is_counted_and_not_listed() -> None:
    sections = rows.sections(report())
    assert rows.blocked(sections) == 2
    assert not [entry for entry in rows.broken(sections) if entry.verdict == "blocked"]


def test_a_run_with_nothing_broken_has_no_list_of_it() -> None:
    built = report()
    built["results"] = [result for result in built["results"] if result["impl"] == "reference"]
    page = whole(html.render(built))
    assert 'id="broken"' not in page
    assert "#broken" not in page


def test_what_was_lost_is_not_listed_as_broken() -> None:
    lost = sample.result("loop.same-init", "reference", Verdict.LOST, case="n=8")
    mixed = sample.result("loop.construct-broadcast", "mine", Verdict.LOST, case="n=9")
    found = rows.broken(rows.sections(build.build(sample.record(extra=(lost, mixed)))))
    assert "lost" not in {verdict for entry in found for verdict, _ in entry.counts}
    assert not [entry for entry in found if entry.impl == "reference"]
    assert [entry.verdict for entry in found if entry.claim["id"] == "loop.construct-broadcast"] == ["hangs"]


def test_a_claim_under_two_names_is_one_of_those_that_did_not_run() -> None:
    report = build.build(sample.record())
    report["results"] = []
    total = sum(rows.not_run(rows.sections(report)).values())
    assert total == len(score.counted_claims(report))
