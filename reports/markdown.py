"""report.md: what a run found, short enough for the description of a pull request.

Texts that an implementation had a hand in are code, in a fence that they cannot close: there they can neither format,
nor link, nor call anybody by name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from conformance.verdict import Verdict, points_told
from reports import compare, paper, score
from reports.start import starts

Report = dict[str, Any]

LISTED = 25  # broken claims; more are counted
STARTS = 3  # implementations
LENGTH = 300  # characters of one text
_MARKS = re.compile(r"[\\`*_{}\[\]<>#|~$&]")
INTERRUPTED = 2  # pytest's exit status
_RED, _GREEN, _WHITE = "🔴", "🟢", "⚪"  # something is in red, nothing is, nothing was decided


def render(report: Report) -> str:
    """Return report.md for a report.json that ``reading.validate`` accepts."""
    parts = [_head(report), _table(report), _start(report), _changes(report), _broken(report), _run(report)]
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part))) + "\n"


def plain(text: object) -> str:
    """One line of the suite's own text, with nothing in it read as Markdown."""
    return _MARKS.sub(lambda mark: "\\" + mark[0], paper.line(text))


def code(text: object, *, in_table: bool = False) -> str:
    """One line of anybody's text as code; in a table a bar would end the cell."""
    shown = paper.line(text)[:LENGTH].strip() or " "
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    edge = " " if shown.startswith("`") or shown.endswith("`") else ""
    shown = shown.replace("|", "\\|") if in_table else shown
    return f"{fence}{edge}{shown}{edge}{fence}"


def _head(report: Report) -> Iterator[str]:
    lost = sum(result["verdict"] == Verdict.LOST.value for result in report["results"])
    red = sum(result["verdict"] in score.ALARMING for result in report["results"]) - lost
    about = [info["name"] for info in score.implementations(report)] or [score.SUITE]
    told, sign = (f"{red:,} {'case' if red == 1 else 'cases'} in red", _RED) if red else ("nothing in red", _GREEN)
    if not red and not score.is_decided(report):
        told, sign = "nothing decided", _WHITE
    if lost:
        told, sign = f"{told}, {lost:,} {'case' if lost == 1 else 'cases'} lost", _RED
    if report["run"]["exit_status"] == INTERRUPTED:
        told = f"interrupted; {told}"
    yield f"### {sign} Lockstep: {', '.join(map(code, about))}: {told}"


def _table(report: Report) -> Iterator[str]:
    found = score.scores(report)
    if not found:
        return
    points = report.get("score", {})
    yield f"| implementation | claims that hold | {' | '.join(score.TIERS)} |{' points |' if points else ''}"
    yield f"|---|{'---|' * (1 + len(score.TIERS))}{'---|' if points else ''}"
    for entry in found:
        cells = [_of(entry.overall), *(_of(entry.tiers[tier]) for tier in score.TIERS)]
        own = points.get(entry.impl)
        earned = [f"{points_told(own['points'])} of {points_told(own['out_of'])}" if own else "–"] if points else []
        yield f"| {_cell(entry.impl)} | {' | '.join([*cells, *earned])} |"


def _cell(text: object) -> str:
    return code(text, in_table=True)


def _of(found: score.Score) -> str:
    return f"{found.holds:,} of {found.decided:,}" if found.decided else "–"


def _start(report: Report) -> Iterator[str]:
    found = starts(report)
    for number, entry in enumerate(found[:STARTS]):
        claim = entry.claim
        yield from [""] if number else []
        yield f"**Start here** ({code(entry.impl)}): {code(claim['id'])} {entry.verdict} ({entry.tier}){entry.behind}."
        yield plain(claim["statement"]["en"] or claim["text"]["en"])
        yield ""
        yield f"    {paper.line(entry.rerun)}"


def _changes(report: Report) -> Iterator[str]:
    if "baseline" not in report:
        return
    turned = [
        (compare.kind(result["before"], result["verdict"]), result)
        for result in report["results"]
        if result.get("before") is not None
    ]
    counts = Counter(kind for kind, _ in turned)
    told = [f"{counts[kind]:,} {kind}" for kind in compare.Kind if counts[kind] and kind is not compare.Kind.SAME]
    yield f"**Since {plain(report['baseline']['started'])}**: {', '.join(told) or 'no verdict has changed'}."
    regressed = [result for kind, result in turned if kind is compare.Kind.REGRESSED]
    if regressed:
        yield ""
    for result in regressed[:LISTED]:
        place = f"{code(result['claim'])}, {code(result['case'])}, {code(result['impl'])}"
        yield f"- regressed: {place}: {result['before']} → {result['verdict']}"
    if len(regressed) > LISTED:
        yield f"- and {len(regressed) - LISTED:,} more"


def _broken(report: Report) -> Iterator[str]:
    groups: dict[tuple[str, str], list[Report]] = {}
    for result in report["results"]:
        if result["verdict"] in score.ALARMING and result["verdict"] != Verdict.LOST.value:
            groups.setdefault((result["impl"], result["claim"]), []).append(result)
    if not groups:
        return
    blocked = sum(result["verdict"] == Verdict.BLOCKED.value for result in report["results"])
    yield f"<details><summary>What is broken ({len(groups):,}){_waiting(blocked)}</summary>"
    yield ""
    yield "| claim | implementation | verdict | cases | what was seen |"
    yield "|---|---|---|---|---|"
    for (impl, claim), results in list(groups.items())[:LISTED]:
        verdict = score.worst(result["verdict"] for result in results)
        seen = next(_seen(result) for result in results if result["verdict"] == verdict)
        yield f"| {_cell(claim)} | {_cell(impl)} | {verdict} | {len(results):,} | {seen} |"
    if len(groups) > LISTED:
        yield f"| and {len(groups) - LISTED:,} more | | | | |"
    yield ""
    yield "</details>"


def _waiting(blocked: int) -> str:
    if not blocked:
        return ""
    return f"; {blocked:,} {'case' if blocked == 1 else 'cases'} could not be judged because of these"


def _seen(result: Report) -> str:
    text = (result["message"] or result["observed"]).partition("\n")[0]
    return _cell(text) if text else ""


def _run(report: Report) -> Iterable[str]:
    around = report["environment"]
    sizes = ", ".join(map(str, around["world_sizes"])) or "none"
    told = [
        f"suite {report['suite']['version']} {report['suite']['git']}".strip(),
        f"Python {around['python']}",
        f"torch {around['torch']}",
        f"{around['backend']} on {around['os']}",
        f"world sizes {sizes}",
        f"seed {report['run']['seed']}",
        f"{report['run']['duration_s']:.0f} s",
    ]
    return [f"<sub>{code(report['run']['command'])} · {plain(' · '.join(told))} · details in report.html</sub>"]
