"""Many hand-ins as one matrix: one row each, files that cannot be used named, nothing in a cell that acts."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path
from typing import Any

import pytest

from conformance.verdict import ImplInfo, Verdict
from reports import build, merge_tables
from reports.__main__ import main
from reports.merge import merge
from tests.reports import sample

Report = dict[str, Any]
RUBRIC = {"name": "week 3", "sha256": "a" * 64}


def hand_in(name: str, verdict: Verdict = Verdict.HOLDS, *, error: str = "", sha256: str = "") -> Report:
    """The report of one hand-in: one claim in two tiers, one of another section."""
    results = (
        sample.result("collectives.agreement", name, verdict),
        sample.result("collectives.agreement", name, tier=sample.Tier.EXOTIC, case="dtype"),
        sample.result("loop.same-init", name),
    )
    info = ImplInfo(name=name, path=f"/home/{name}", sha256=sha256, blocks=(), error=error)
    record = sample.record()
    made = dataclasses.replace(
        record, run={**record.run, "id": name}, impls=(info,), results=results, scenarios=(), collected=3
    )
    return build.build(made)


def graded(report: Report, points: float, rubric: Report = RUBRIC) -> Report:
    [info] = report["impls"]
    tiers = {"core": {"points": points, "out_of": 8.0, "open": 0.0}}
    score = {"points": points, "out_of": 10.0, "open": 1.0, "tiers": tiers, "breakdown": []}
    return {
        **report,
        "rubric": rubric,
        "score": {info["name"]: score},
    }


def put(folder: Path, report: Report) -> Path:
    folder.mkdir(parents=True)
    path = folder / "report.json"
    path.write_text(build.dumps(report), encoding="utf-8")
    return path


@pytest.fixture
def course(tmp_path: Path) -> Path:
    for name, verdict in (("آرش", Verdict.HOLDS), ("bob b", Verdict.VIOLATED), ("chen", Verdict.NOT_PROVIDED)):
        put(tmp_path / "course" / name, hand_in(f"{name}.py", verdict))
    return tmp_path / "course"


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_each_hand_in_has_a_row_under_the_name_of_its_folder(course: Path) -> None:
    found = merge([course])
    assert [row.hand_in for row in found.rows] == ["bob b", "chen", "آرش"]
    assert found.trouble == ()
    assert [(row.overall.holds, row.overall.decided) for row in found.rows] == [(1, 2), (2, 2), (2, 2)]


def test_one_broken_tier_breaks_the_claim_and_leaves_the_other_tier(course: Path) -> None:
    [bob, *_] = merge([course]).rows
    assert bob.claims == {"collectives.agreement": "violated", "loop.same-init": "holds"}
    assert {tier: (of.holds, of.decided) for tier, of in bob.tiers.items()} == {
        "core": (1, 2),
        "contract": (0, 0),
        "exotic": (1, 1),
    }
    assert {name: (of.holds, of.decided) for name, of in bob.sections.items()} == {
        "collectives": (0, 1),
        "loop": (1, 1),
    }


def test_the_csv_has_figures_for_tiers_and_sections(course: Path) -> None:
    rows = table(merge_tables.as_csv(merge([course])))
    bob = rows[0]
    assert (bob["hand_in"], bob["core.holds"], bob["core.decided"], bob["loop.holds"]) == ("bob b", "1", "2", "1")
    assert "points" not in bob


def test_the_csv_has_a_verdict_for_each_claim_on_demand(course: Path) -> None:
    rows = table(merge_tables.as_csv(merge([course]), by_claim=True))
    assert [row["collectives.agreement"] for row in rows] == ["violated", "holds", "holds"]


def test_points_are_in_the_matrix_where_a_rubric_gave_them(tmp_path: Path) -> None:
    put(tmp_path / "a", graded(hand_in("a.py"), 7.5))
    put(tmp_path / "b", graded(hand_in("b.py"), 20 / 3))
    found = merge([tmp_path])
    rows = table(merge_tables.as_csv(found))
    assert [(row["points"], row["out_of"], row["core.points"]) for row in rows] == [
        ("7.5", "10.0", "7.5"),
        ("6.67", "10.0", "6.67"),
    ]
    assert "7.5/10 (1 open)" in merge_tables.as_text(found, 100)


def test_files_that_cannot_be_used_are_named_and_stop_nothing(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [put(course / "zz torn", hand_in("torn")), put(course / "zz foreign", hand_in("foreign"))]
    broken[0].write_text('{"schema_version": "1.0", ', encoding="utf-8")
    broken[1].write_text('{"tests": 3}', encoding="utf-8")
    broken.append(put(course / "zz newer", {**hand_in("newer"), "schema_version": "2.0"}))
    broken.append(put(course / "zz twice", hand_in("bob b.py", Verdict.VIOLATED)))
    assert main(["merge", str(course), str(tmp_path / "nowhere"), f"--out={tmp_path / 'out'}"]) == 1
    told = capsys.readouterr().err
    assert all(str(path) in told for path in broken)
    assert "nowhere could not be read" in told
    assert "for the second time" in told
    assert len(table((tmp_path / "out" / "class.csv").read_text(encoding="utf-8"))) == 3


def test_a_file_that_is_reached_twice_is_one_file(course: Path) -> None:
    found = merge([course, course / "chen", course / "chen" / "report.json"])
    assert len(found.rows) == 3
    assert found.trouble == ()


def test_two_folders_of_one_name_are_told_apart(course: Path, tmp_path: Path) -> None:
    put(tmp_path / "other" / "chen", hand_in("another"))
    names = [row.hand_in for row in merge([course, tmp_path / "other"]).rows]
    assert len(set(names)) == 4


def test_another_rubric_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        put(tmp_path / name, graded(hand_in(name), 1.0))
    odd = put(tmp_path / "c", graded(hand_in("c"), 1.0, {**RUBRIC, "sha256": "b" * 64}))
    none = put(tmp_path / "d", hand_in("d"))
    assert main(["merge", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert f"{odd} was graded by another rubric" in told
    assert f"{none} was graded by no rubric" in told


def test_identical_sources_are_a_note_and_no_trouble(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        put(tmp_path / name, hand_in(name, sha256="c" * 64))
    assert main(["merge", str(tmp_path)]) == 0
    assert "note: the same sources to the letter: a, b" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["=cmd|'/C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", " =1", "＝1", '=1","2'])
def test_no_cell_is_a_formula(name: str, tmp_path: Path) -> None:
    put(tmp_path / "x", hand_in(name, error=name))
    text = merge_tables.as_csv(merge([tmp_path]))
    [row] = table(text)
    assert len(row) == len(table(text)[0])
    for cell in row.values():
        assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝"))
    assert name.strip() in row["implementation"]


def test_hostile_names_are_inert_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "in" / "x\x1b[31m", hand_in(sample.HOSTILE, error=sample.HOSTILE))
    assert main(["merge", str(tmp_path / "in"), f"--out={tmp_path / 'out'}"]) == 0
    captured = capsys.readouterr()
    texts = [captured.out, captured.err, *(p.read_text(encoding="utf-8") for p in (tmp_path / "out").iterdir())]
    assert not any(sign in text for text in texts for sign in "\x1b\u202e\x00")


def test_nothing_to_merge_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(tmp_path), f"--out={tmp_path / 'out'}"]) == 2
    captured = capsys.readouterr()
    assert "no report could be merged" in captured.err
    assert "pytest --report=FOLDER" in captured.err
    assert not (tmp_path / "out").exists()


def test_what_a_course_says_of_a_hand_in_stands_in_its_row_and_of_others_in_rows_of_their_own(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said, csv_at = tmp_path / "said.json", tmp_path / "grades.csv"
    said.write_text('{"chen": ["late", "by a day"], "=zoe.zip": ["not read"], "bob b": []}', encoding="utf-8")
    assert main(["merge", str(course), f"--remarks={said}", f"--csv={csv_at}", f"--html={tmp_path / 'page'}"]) == 0
    rows = {row["hand_in"]: row for row in table(csv_at.read_text(encoding="utf-8"))}
    assert {name: row["remarks"] for name, row in rows.items() if row["remarks"]} == {
        "chen": "late; by a day",
        "'=zoe.zip": "not read",
    }
    assert rows["'=zoe.zip"]["holds"] == ""
    assert "note: =zoe.zip has no report: not read" in capsys.readouterr().out
    assert "=zoe.zip has no report" in (tmp_path / "page").read_text(encoding="utf-8")


def test_remarks_that_are_none_are_refused(course: Path, tmp_path: Path) -> None:
    (tmp_path / "said.json").write_text("[1]", encoding="utf-8")
    assert main(["merge", str(course), f"--remarks={tmp_path / 'said.json'}"]) == 2


def test_a_place_that_cannot_be_written_is_told(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["merge", str(course), f"--csv={tmp_path / 'file' / 'class.csv'}"]) == 2
    assert "could not be written" in capsys.readouterr().err


def test_many_rows_are_cut_in_the_terminal_and_whole_in_the_csv(tmp_path: Path) -> None:
    for number in range(merge_tables.SHOWN + 2):
        put(tmp_path / f"{number:03}", hand_in(f"h{number}"))
    found = merge([tmp_path])
    assert "and 2 more" in merge_tables.as_text(found, 100)
    assert len(table(merge_tables.as_csv(found))) == merge_tables.SHOWN + 2


def test_a_report_is_never_replaced(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = course / "chen" / "report.json"
    before = report.read_bytes()
    assert main(["merge", str(course), f"--csv={report}"]) == 2
    assert "would be replaced" in capsys.readouterr().err
    assert report.read_bytes() == before
