"""The card of one claim as text: what it says, what is true, and the evidence of each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from reports import paper, rows, score

Report = dict[str, Any]

SHOWN = 8  # cases at length; more are named
_OWN_LINES = ("rerun",)  # a command stays in one piece


def card(report: Report, claim: Report, results: Sequence[Report], room: int, language: str = "en") -> list[str]:
    """The claim and its results, the worst first, in lines of at most ``room`` columns but for commands.

    What is broken is told at length, what is not in a few lines for each check; everything where there is little.
    """
    lines = [*_claim(claim, room, language), ""]
    if not results:
        return [*lines, "no result in this report: the run did not choose it"]
    impls = dict.fromkeys(result["impl"] for result in results)
    ordered = _worst_first(results)
    bundles = [bundle for impl in impls for bundle in rows.bundles(r for r in ordered if r["impl"] == impl)]
    is_little = len(results) <= 2
    at_length = [bundle for bundle in bundles if bundle.is_loud or is_little][:SHOWN]
    hinted: set[str] = set()
    for bundle in at_length:
        hint = _text(bundle.first["hint"], language)
        lines += [*_case(bundle.first, room, "" if hint in hinted else hint, language), ""]
        hinted.add(hint)
    for bundle in bundles:
        if bundle not in at_length:
            lines += _short(bundle, room)
    if not bundles:
        lines += paper.wrapped(f"{results[0]['verdict']}: {results[0]['message']}", room)
    return lines


def _worst_first(results: Sequence[Report]) -> list[Report]:
    verdicts = [verdict for verdict, _ in score.ordered(Counter(result["verdict"] for result in results))]
    return sorted(results, key=lambda r: (score.TIERS.index(r["tier"]), verdicts.index(r["verdict"])))


def _claim(claim: Report, room: int, language: str) -> Iterator[str]:
    yield paper.line(claim["id"])
    fields = {
        "says": _text(claim["text"], language),
        "truth": claim["truth"],
        "true is": _text(claim["statement"], language) if claim["statement"] != claim["text"] else "",
        "formula": claim["formula"],
        "source": claim["source"],
        "needs": ", ".join(claim["needs"]),
        "same as": claim["same_as"] or "",
    }
    yield from paper.fields(fields, room)


def _case(result: Report, room: int, hint: str, language: str) -> Iterator[str]:
    before = result.get("before")
    turn = f", before {before}" if before and before != result["verdict"] else ""
    head = f"{result['verdict'].upper()} ({result['impl']}, {result['tier']}{turn}): {result['case'] or 'no case'}"
    yield from paper.wrapped(paper.line(head), room)
    unit = f" {result['unit']}" if result["unit"] else ""
    fields = {
        "what": result["message"],
        "expected": f"{result['expected']}{unit}" if result["expected"] else "",
        "observed": f"{result['observed']}{unit}" if result["observed"] else "",
        "witness": result["witness"],
        "examples": result["examples"] or "",
        "blocked by": result["blocked_by"] or "",
        **dict(_ranks(result["ranks"])),
        "hint": hint,
        "timeline": f"traces/{result['timeline']}" if result["timeline"] else "",
        "script": f"reproduce/{result['reproduce']}" if result.get("reproduce") else "",
        "no script": _text(result["no_script"], language) if result.get("no_script") else "",
        "rerun": result["rerun"],
    }
    yield from paper.fields(fields, room, whole=_OWN_LINES)


def _ranks(ranks: Sequence[Report]) -> Iterator[tuple[str, str]]:
    for numbers, rank in rows.ranks_alike(ranks):
        name = f"rank {', '.join(map(str, numbers))}" if len(numbers) == 1 else f"ranks {', '.join(map(str, numbers))}"
        detail = "" if rank["detail"] == f"rank {rank['rank']} {rank['ending']}" else rank["detail"]
        yield name, "\n".join(filter(None, [rank["ending"], detail, rank["output"]]))


def _short(bundle: rows.Bundle, room: int) -> Iterator[str]:
    first = bundle.first
    cases = f"{len(bundle.results)} cases of " if len(bundle.results) > 1 else ""
    said = f"{first['verdict']}: {cases}{bundle.name or 'no case'} ({first['impl']}, {first['tier']})"
    yield paper.clipped(paper.line(said), room)
    seen = {"what": paper.line(bundle.message), "observed": paper.line(f"{first['observed']} {first['unit']}").strip()}
    yield from (paper.clipped(part, room) for part in paper.fields(seen, room, indent="    ", whole=seen))


def _text(text: Report, language: str) -> str:
    return str(text[language] or text["en"])
