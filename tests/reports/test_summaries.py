"""What is made from report.json beside the page: report.md, badge.svg, the last lines of the terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.verdict import ImplInfo, Result, Verdict
from reports import badge, baseline, build, closing, markdown
from tests.reports import sample

Report = dict[str, Any]


@pytest.fixture(scope="module")
def report() -> Report:
    return build.build(sample.record())


def of(*results: Result) -> Report:
    """A report of one implementation with these results."""
    record = sample.record()
    names = dict.fromkeys(result.impl for result in results)
    impls = tuple(ImplInfo(name=name, path="", sha256="", blocks=()) for name in names)
    changed = dataclasses.replace(record, impls=impls, results=results, scenarios=(), collected=len(results))
    return build.build(changed)


def empty() -> Report:
    return build.build(dataclasses.replace(sample.record(), impls=(), claims=(), results=(), scenarios=(), collected=0))


def test_the_summary_says_where_to_start_and_what_is_broken(report: Report) -> None:
    text = markdown.render(report)
    assert "**Start here** (`mine`): `collectives.ring.bytes` violated (core)" in text
    assert "| `loop.construct-broadcast` | `mine` | hangs | 1 |" in text
    assert "| `mine` | 2 of 6 | 3 of 6 | – | 1 of 2 |" in text


def test_a_run_with_nothing_in_red_is_short() -> None:
    text = markdown.render(of(sample.result("loop.same-init", "mine")))
    assert "nothing in red" in text
    assert "Start here" not in text
    assert "broken" not in text


def test_points_have_a_column_where_there_is_a_rubric(report: Report) -> None:
    graded = {**report, "score": {"mine": {"points": 7.5, "out_of": 10.0}}}
    assert "| `mine` | 2 of 6 | 3 of 6 | – | 1 of 2 | 7.5 of 10 |" in markdown.render(graded)


def test_what_changed_since_the_baseline_is_in_the_summary(report: Report) -> None:
    now = build.build(
        sample.record(extra=(sample.result("loop.same-init", "torch", Verdict.HANGS, case="world_size=8"),))
    )
    before = build.build(sample.record(extra=(sample.result("loop.same-init", "torch", case="world_size=8"),)))
    text = markdown.render(baseline.with_before(now, before))
    assert "**Since 2025-03-14" in text
    assert "1 regressed" in text
    assert "- regressed: `loop.same-init`, `world_size=8`, `torch`: holds → hangs" in text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ring", "`ring`"),
        ("a`b", "``a`b``"),
        ("`a``b`", "``` `a``b` ```"),
        ("two\nlines", "`two⏎lines`"),
        ("", "` `"),
        ("a|b", "`a|b`"),
    ],
)
def test_code_cannot_be_left(text: str, code: str) -> None:
    assert markdown.code(text) == code


def test_a_bar_does_not_end_a_cell() -> None:
    assert markdown.code("a|b", in_table=True) == r"`a\|b`"


HOSTILE = f"{sample.HOSTILE} `|` </details> @everyone [link](http://example.org) **bold**\n# head"


def test_hostile_texts_stay_in_their_cell() -> None:
    text = markdown.render(of(sample.result("loop.step", HOSTILE, Verdict.CRASHES, case=HOSTILE, message=HOSTILE)))
    assert "\x1b" not in text
    assert "\n# head" not in text
    [row] = [line for line in text.splitlines() if line.startswith("| `loop.step`")]
    bars = [at for at, sign in enumerate(row) if sign == "|" and row[at - 1] != "\\"]
    assert len(bars) == 6


def test_a_long_text_is_cut() -> None:
    text = markdown.render(of(sample.result("loop.step", "mine", Verdict.CRASHES, message="x" * 10_000)))
    assert len(text) < 2_000


DRAWN: list[Callable[[Report], str]] = [
    markdown.render,
    badge.render,
    lambda report: "\n".join(closing.lines(report, [], 100)),
]


@pytest.mark.parametrize("draw", DRAWN, ids=["markdown", "badge", "closing"])
def test_a_report_without_results_is_drawn(draw: Callable[[Report], str]) -> None:
    draw(empty())


@pytest.mark.parametrize(
    ("verdicts", "text", "colour"),
    [
        ([Verdict.HOLDS], "1 of 1 hold", badge._GOOD),
        ([Verdict.HOLDS, Verdict.VIOLATED], "0 of 1 hold", badge._BAD),
        ([Verdict.HOLDS, Verdict.LOST], "0 of 0 hold", badge._OURS),
        ([Verdict.NOT_PROVIDED], "nothing decided", badge._NOTHING),
    ],
)
def test_the_badge_says_it_in_one_line(verdicts: list[Verdict], text: str, colour: str) -> None:
    results = (sample.result("loop.same-init", "mine", verdict, case=str(n)) for n, verdict in enumerate(verdicts))
    drawn = badge.render(of(*results))
    root = ElementTree.fromstring(drawn)
    assert root.get("aria-label") == f"lockstep: {text}"
    assert colour in drawn


def test_the_badge_of_several_counts_them(report: Report) -> None:
    assert "16 of 22 hold (3 implementations)" in badge.render(report)


def test_the_last_lines_are_few_and_the_worst_stand_first(report: Report) -> None:
    many = of(
        *(sample.result("loop.step", f"group-{n}", Verdict.HOLDS) for n in range(40)),
        sample.result("loop.step", "broken one", Verdict.CRASHES),
    )
    for drawn in (report, many):
        lines = closing.lines(drawn, ["out/report.html", "report.json"], 100)
        assert len(lines) <= closing.MAX_LINES
    lines = closing.lines(many, [], 100)
    assert lines[0] == "broken one  1 crashes"
    assert "and 37 more implementations, with less in red" in lines


@pytest.mark.parametrize("room", [40, 100])
def test_the_last_lines_keep_to_the_width_and_are_inert(room: int) -> None:
    lines = closing.lines(of(sample.result("loop.step", HOSTILE, Verdict.CRASHES, rerun="")), [], room)
    assert all(len(line) <= room for line in lines)
    assert not any(sign in "".join(lines) for sign in "\x1b\u202e\n")


def test_a_run_that_decided_nothing_is_not_green() -> None:
    text = markdown.render(of(sample.result("loop.same-init", "mine", Verdict.NOT_PROVIDED)))
    assert text.startswith("### ⚪ Lockstep: `mine`: nothing decided\n")


def test_what_an_interrupted_run_lost_is_counted_and_hides_nothing() -> None:
    lost = [sample.result("loop.same-init", "mine", Verdict.LOST, case=str(n)) for n in range(2)]
    found = of(*lost, sample.result("loop.same-init", "mine", Verdict.HANGS))
    found["run"]["exit_status"] = 2
    text = markdown.render(found)
    assert text.startswith("### 🔴 Lockstep: `mine`: interrupted; 1 case in red, 2 cases lost\n")
    assert "| `loop.same-init` | `mine` | hangs | 1 |" in text
    assert "(1)" in text
