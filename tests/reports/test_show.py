"""``python -m reports show``: the card of one claim in the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.verdict import RankReport, Text, Verdict
from reports import build, paper, show
from reports.__main__ import main
from tests.reports import sample

FLOOD = "x" * 50_000
HOSTILE = sample.result(
    "loop.step",
    "mine",
    Verdict.CRASHES,
    case=f"{sample.HOSTILE}\nsecond line",
    message=sample.HOSTILE + FLOOD,
    observed=sample.HOSTILE,
    ranks=(RankReport(rank=0, ending=sample.HOSTILE, detail=FLOOD, output=sample.HOSTILE),),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "report.json").write_text(build.dumps(build.build(sample.record(extra=(HOSTILE,)))), encoding="utf-8")
    return folder


def shown(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["show", str(path), *arguments]) == 0
    return capsys.readouterr().out


def test_the_card_has_the_claim_and_the_evidence(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(path, capsys, "loop.construct-broadcast")
    words = " ".join(text.split())
    assert "HANGS (mine, core): world_size=4" in text
    assert "what ranks 0, 1, 3 wait in broadcast #2" in words
    assert "ranks 0, 1, 3 hung" in words
    assert "rerun pytest --impl=mine --claim='loop.construct-broadcast' -k 'world_size=4'" in words
    assert text.index("HANGS") < text.index("holds: world_size=4 (reference, core)")


def test_one_implementation_and_one_case_can_be_chosen(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(path, capsys, "collectives.ring.bytes", "--impl=mine", "--case=world_size=3")
    assert "(mine, core)" in text
    assert "reference" not in text
    assert "world_size=4" not in text
    assert "pytest" in text  # what is asked for by name is told at length


def test_a_second_name_of_a_fact_shows_its_evidence(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "CRASHES (mine, core): world_size=4" in shown(path, capsys, "faq.mean-not-sum")


def test_a_hint_is_given_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hint = Text(en="Look at the tail.", fa="به انتها نگاه کنید.")
    extra = tuple(sample.result("loop.step", "mine", Verdict.VIOLATED, case=f"test_{n}", hint=hint) for n in range(3))
    (tmp_path / "report.json").write_text(build.dumps(build.build(sample.record(extra=extra))), encoding="utf-8")
    text = shown(tmp_path, capsys, "loop.step", "--impl=mine", "--case=test_")
    assert text.count("Look at the tail.") == 1
    assert text.count("VIOLATED (mine, core): test_") == 3


def test_a_script_that_shows_the_fault_alone_is_named() -> None:
    report = build.build(sample.record())
    claim = next(claim for claim in report["claims"] if claim["id"] == "loop.mean")
    [result] = [r for r in report["results"] if (r["claim"], r["impl"]) == ("loop.mean", "mine")]
    lines = show.card(report, claim, [{**result, "reproduce": "loop.mean.py"}], 100)
    assert "  script  reproduce/loop.mean.py" in lines


def test_why_there_is_no_script_is_said() -> None:
    why = Text(en="it takes a clock", fa="ساعت می‌خواهد")
    record = sample.record(extra=(sample.result("loop.step", "mine", Verdict.VIOLATED, no_script=why),))
    report = build.build(record)
    claim = next(claim for claim in report["claims"] if claim["id"] == "loop.step")
    result = report["results"][-1]
    assert "  no script  it takes a clock" in show.card(report, claim, [result], 100)
    assert "  no script  ساعت می‌خواهد" in show.card(report, claim, [result], 100, "fa")


def test_persian_is_shown_on_demand(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = sample.record().claims[0]
    assert claim.text.fa.split()[0] in shown(path, capsys, claim.id, "--lang=fa")


def test_a_claim_that_was_not_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = build.build(sample.record())
    report |= {"results": [], "collected": 0, "reported": 0, "summary": {info["name"]: {} for info in report["impls"]}}
    (tmp_path / "report.json").write_text(build.dumps(report), encoding="utf-8")
    assert "did not choose it" in shown(tmp_path, capsys, "loop.step")


@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_hostile_text_is_inert_and_keeps_to_the_width(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = shown(path, capsys, "loop.step", "--impl=mine")
    assert not any(sign in text for sign in "\x1b\u202e\x00\r")
    assert len(text) < 60_000
    assert all(paper.width(line) <= int(columns) or "pytest" in line for line in text.splitlines())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["loop.sme"], "no claim 'loop.sme'. Did you mean 'loop.step'?"),
        (["loop.step", "--impl=nobody"], "no implementation 'nobody'. It has: reference, torch, mine"),
        (["loop.mean", "--case=nowhere"], "no case 'nowhere'."),
        (["\x1b[31mred"], "no claim"),
    ],
)
def test_what_the_report_does_not_have_is_told(
    path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["show", str(path), *arguments]) == 2
    captured = capsys.readouterr()
    assert told in captured.err.replace("'\\x1b[31mred'", "")
    assert "\x1b" not in captured.err
    assert captured.out == ""
