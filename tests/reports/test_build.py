from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.verdict import Earned, Points, RankReport, RubricInfo, Score, Tier, Truth, Verdict, Witness
from reports import build
from tests.reports import sample

Report = dict[str, Any]


@pytest.fixture(scope="module")
def report() -> Report:
    return build.build(sample.record())


def test_the_sample_has_every_verdict() -> None:
    assert {result.verdict for result in sample.results()} == set(Verdict)


def test_a_built_report_is_valid(report: Report) -> None:
    build.validate(report)


def test_points_and_their_rubric_are_in_the_report_together() -> None:
    line = Earned(claim="loop.mean", tier=Tier.CORE, weight=3, points=1.5, open=0.5, verdict=Verdict.VIOLATED)
    total = Points(points=1.5, out_of=3, open=0.5)
    score = Score(points=1.5, out_of=3, open=0.5, tiers={"core": total}, breakdown=(line,))
    rubric = RubricInfo(name="Two", sha256="0" * 64)
    built = build.build(dataclasses.replace(sample.record(), rubric=rubric, score={"mine": score}))
    build.validate(built)
    assert built["rubric"]["name"] == "Two"
    assert built["score"]["mine"]["tiers"]["core"] == {"points": 1.5, "out_of": 3, "open": 0.5}
    assert built["score"]["mine"]["breakdown"][0]["verdict"] == "violated"
    del built["rubric"]
    with pytest.raises(build.InvalidReport, match="rubric"):
        build.validate(built)


def test_what_was_collected_is_reported(report: Report) -> None:
    assert report["collected"] == report["reported"] == len(report["results"])


def test_a_report_survives_writing_and_reading(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(build.dumps(report), encoding="utf-8")
    assert build.load(path) == report


@pytest.mark.parametrize(
    ("definition", "choices"),
    [("verdict", Verdict), ("tier", Tier), ("truth", Truth)],
)
def test_the_schema_knows_the_words_of_the_verdicts(definition: str, choices: Any) -> None:
    schema = json.loads(build.SCHEMA_PATH.read_text(encoding="utf-8"))
    assert schema["$defs"][definition]["enum"] == [choice.value for choice in choices]


def test_the_schema_knows_the_witnesses() -> None:
    schema = json.loads(build.SCHEMA_PATH.read_text(encoding="utf-8"))
    assert schema["$defs"]["witness"]["enum"] == ["", *(witness.value for witness in Witness)]


def _set(*path: str | int, value: Any) -> Callable[[Report], None]:
    def change(report: Report) -> None:
        place: Any = report
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    change.__name__ = f"{'.'.join(map(str, path))} is {value!r}"
    return change


def _drop(*path: str | int) -> Callable[[Report], None]:
    def change(report: Report) -> None:
        place: Any = report
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    change.__name__ = f"no {'.'.join(map(str, path))}"
    return change


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_drop("results"), "results"),
        (_drop("environment", "torch"), "torch"),
        (_drop("claims", 0, "text", "fa"), "fa"),
        (_set("schema_version", value="2.0"), "2.0"),
        (_set("results", 0, "verdict", value="fine"), "fine"),
        (_set("results", 0, "tier", value="easy"), "easy"),
        (_set("results", 0, "surprise", value=1), "surprise"),
        (_set("results", 0, "witness", value=""), "results"),
        (_set("results", 0, "duration_s", value=-1), "duration_s"),
        (_set("results", 0, "claim", value="no.such-claim"), "no.such-claim"),
        (_set("results", 0, "impl", value="nobody"), "summary"),
        (_set("claims", 0, "truth", value="perhaps"), "perhaps"),
        (_set("claims", 0, "id", value="Not A Slug"), "Not A Slug"),
        (_set("impls", 0, "sha256", value="abc"), "abc"),
        (_set("summary", "mine", "violated", value=0), "summary"),
        (_set("summary", "mine", "violated", value=99), "summary"),
        (_set("collected", value=1), "collected"),
        (_set("reported", value=1), "reported"),
    ],
)
def test_a_damaged_report_is_refused_and_the_place_is_named(
    report: Report, damage: Callable[[Report], None], told: str
) -> None:
    damaged = copy.deepcopy(report)
    damage(damaged)
    with pytest.raises(build.InvalidReport, match=told):
        build.validate(damaged)


def test_a_lost_result_is_missed() -> None:
    record = sample.record()
    report = build.build(record)
    report["results"].pop()
    with pytest.raises(build.InvalidReport):
        build.validate(report)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null"])
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(build.InvalidReport):
        build.load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(build.InvalidReport, match="could not be read"):
        build.load(tmp_path / "report.json")


def test_hostile_texts_make_a_valid_small_report() -> None:
    flood = sample.HOSTILE * 40_000
    hostile = sample.result(
        "loop.step",
        "mine",
        Verdict.CRASHES,
        case=sample.HOSTILE,
        message=flood,
        observed=flood,
        ranks=(RankReport(rank=0, ending=sample.HOSTILE, detail=flood, output=flood),),
        data={"numbers": [float("nan"), float("inf"), 1], sample.HOSTILE: {1, 2}},
    )
    report = build.build(sample.record(extra=(hostile,)))
    build.validate(report)
    text = build.dumps(report)
    assert len(text.encode("utf-8")) < 200_000
    assert "\x1b" not in text
    assert "\\u001b" not in text
    assert "\\u0000" not in text
    assert report["results"][-1]["data"]["numbers"] == [None, None, 1]
