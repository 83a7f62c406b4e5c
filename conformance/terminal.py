"""What the terminal shows: letters while checks run, then a table of verdicts, then one card for each broken claim."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pytest

from conformance.grading import points
from conformance.last_words import telling
from conformance.options import SUITE
from conformance.verdict import Record, Result, ScenarioStory, Tier, Verdict
from impls.contract import ENTRIES

# verdict -> letter; the word is the verdict itself
LETTERS = {
    Verdict.HOLDS: ".",
    Verdict.VIOLATED: "V",
    Verdict.HANGS: "H",
    Verdict.CRASHES: "C",
    Verdict.SUITE_ERROR: "S",
    Verdict.LOST: "L",
    Verdict.DEVIATES: "d",
    Verdict.REFUSES: "r",
    Verdict.NOT_PROVIDED: "-",
    Verdict.NOT_CHECKED: "n",
    Verdict.INCONCLUSIVE: "?",
}
RED = frozenset({Verdict.VIOLATED, Verdict.HANGS, Verdict.CRASHES, Verdict.SUITE_ERROR, Verdict.LOST})
MAX_LINES = 12  # of one field on a card; the report has all
MAX_STORY_LINES = 120
PROSE_WIDTH = 100
MAX_CARDS = 3  # of one claim and verdict
_RAISED = re.compile(r"raised (\S+ at \S+:\d+)")


def write(reporter: pytest.TerminalReporter, record: Record, *, explain: bool) -> None:
    """Print the table, the sentences about implementations, the cards, and with ``explain`` the stories."""
    reporter.section("Lockstep")
    for line in table(record) if record.results else ():
        reporter.write_line(line)
    for info in record.impls:
        for line in (*info.error.splitlines(), *_refusals(record, info.name), *_nothing_examined(record, info.name)):
            reporter.write_line(f"{info.name}: {line}", yellow=True)
    if record.rubric is not None:
        for line in points.lines(record.rubric, record.score):
            reporter.write_line(line)
    unloaded = {(info.name, info.error) for info in record.impls if info.error}  # told above, once for all checks
    for groups in _broken([result for result in record.results if (result.impl, result.message) not in unloaded]):
        for group in groups[:MAX_CARDS]:
            reporter.write_line("")
            reporter.write_line(_title(group), red=True, bold=True)
            for line in card(group):
                reporter.write_line(line)
        if (more := len(groups) - MAX_CARDS) > 0:
            reporter.write_line(f"  and {more} more kinds of failure of {groups[0][0].claim} in the report")
    if explain:
        for story in record.scenarios:
            reporter.section(f"{story.id}: {story.title.en}", sep="-")
            for line in _fields(_told(story), max_lines=MAX_STORY_LINES):
                reporter.write_line(line)


def table(record: Record) -> list[str]:
    """Counts of each verdict by implementation, section and tier; only verdicts that occur have a column."""
    sections = {claim.id: claim.section for claim in record.claims}
    seen = {result.verdict for result in record.results}
    columns = [verdict for verdict in Verdict if verdict in seen]
    order = {section: i for i, section in enumerate(dict.fromkeys(sections.values()))}
    tiers = {tier: i for i, tier in enumerate(Tier)}
    impls = {name: i for i, name in enumerate(dict.fromkeys(result.impl for result in record.results))}

    def key(result: Result) -> tuple[int, int, int]:
        section = sections.get(result.claim, "")
        return impls[result.impl], order.get(section, len(order)), tiers[result.tier]

    rows = [["implementation", "section", "tier", *(verdict.value for verdict in columns)]]
    shown = ""
    for _, group in itertools.groupby(sorted(record.results, key=key), key=key):
        results = list(group)
        first = results[0]
        counts = Counter(result.verdict for result in results)
        name = first.impl if first.impl != shown else ""
        shown = first.impl
        figures = [str(counts[verdict]) if counts[verdict] else "·" for verdict in columns]
        rows.append([name, sections.get(first.claim, ""), first.tier.value, *figures])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(_align(cell, widths[i], i) for i, cell in enumerate(row)).rstrip() for row in rows]


def card(group: Sequence[Result]) -> list[str]:
    """The evidence of the first case of one claim, in fields, and the names of the others."""
    first = group[0]
    unit = f" {first.unit}" if first.unit else ""
    printed = {f"rank {rank.rank} said": rank.output for rank in first.ranks if rank.output.strip()}
    others = [result.case for result in group[1:]]
    fields = {
        "case": first.case,
        "what": first.message,
        "expected": f"{first.expected}{unit}" if first.expected else "",
        "observed": f"{first.observed}{unit}" if first.observed else "",
        "witness": first.witness,
        **{name: telling(text) for name, text in printed.items()},
        "also": ", ".join(others[:4]) + (f" and {len(others) - 4} more" if len(others) > 4 else ""),
        "hint": first.hint.en,
        "script": f"reproduce/{first.reproduce} beside the report" if first.reproduce else "",
        "rerun": first.rerun,
    }
    return list(_fields(fields, max_lines=MAX_LINES))


def report_text(result: Result) -> str:
    """A card as one text, for pytest's own report of a failed test and for JUnit."""
    return "\n".join([f"{result.claim} {result.verdict.value} ({result.impl})", *card([result])])


def mutant_lines(killed: Mapping[str, Iterable[str]], named: Mapping[str, Iterable[str]]) -> list[str]:
    """Who broke what: each mutant with the claims it broke, and those it names and left whole."""
    lines = []
    for mutant, claims in named.items():
        broke = set(killed.get(mutant, ()))
        survived = sorted(set(claims) - broke)
        lines.append(f"{mutant}: breaks {', '.join(sorted(broke)) or 'nothing'}")
        if survived:
            lines.append(f"  SURVIVED {', '.join(survived)}")
    return lines


def _broken(results: Iterable[Result]) -> list[list[list[Result]]]:
    """What is red, by implementation, claim and verdict, and within these by the fault: a card each.

    A card shows the case that says most: of the basic tier, and of these the quickest, which is the simplest as a rule.
    """
    claims: dict[tuple[str, str, Verdict], dict[tuple[str, ...], list[Result]]] = {}
    for result in results:
        if result.verdict in RED:
            groups = claims.setdefault((result.impl, result.claim, result.verdict), {})
            groups.setdefault(_fault(result), []).append(result)
    return [[sorted(group, key=_telling) for group in groups.values()] for groups in claims.values()]


def _telling(result: Result) -> tuple[int, float]:
    return list(Tier).index(result.tier), result.duration_s


def _fault(result: Result) -> tuple[str, ...]:
    """What tells two faults under one claim apart: the function that was examined, the place that raised."""
    _, _, parameters = result.case.partition("[")
    functions = tuple(name for name in re.split(r"[-\]]", parameters) if name in ENTRIES)
    places = tuple(dict.fromkeys(_RAISED.findall(result.message))) if result.verdict is Verdict.CRASHES else ()
    return functions + places[:1]


def _told(story: ScenarioStory) -> dict[str, str]:
    """In the order of an investigation: what happens, what the witnesses saw, why, what helps, and that it did."""
    seen = list(itertools.takewhile(lambda line: not line.startswith("cure: "), story.evidence))
    return {
        "symptom": story.symptom.en,
        "seen": "\n".join(seen),
        "cause": story.diagnosis.en,
        "cure": story.cure.en,
        "cured": "\n".join(story.evidence[len(seen) :]),
        "rerun": story.rerun,
    }


def _refusals(record: Record, impl: str) -> list[str]:
    """Why it refuses, each reason once: nothing red tells of it, and what helps is part of the reason."""
    reasons = Counter(
        result.message for result in record.results if result.impl == impl and result.verdict is Verdict.REFUSES
    )
    told = [
        f"refuses ({count} {'check' if count == 1 else 'checks'}): {reason}"
        for reason, count in reasons.most_common(MAX_CARDS)
    ]
    more = len(reasons) - MAX_CARDS
    return [*told, *([f"and {more} more reasons to refuse in the report"] if more > 0 else [])]


def _nothing_examined(record: Record, impl: str) -> list[str]:
    """One line where not a single check of this implementation could run."""
    results = [result for result in record.results if result.impl == impl and result.verdict is not Verdict.NOT_CHECKED]
    error = next(info.error for info in record.impls if info.name == impl)
    if error and results and all(result.message == error for result in results):
        return [f"nothing was examined: all {len(results)} checks wait for that"]
    if not record.results or any(result.verdict is not Verdict.NOT_PROVIDED for result in results) or impl == SUITE:
        return []
    met = Counter(result.message for result in results if " does not provide " not in result.message)
    if reasons := [message for message, _ in met.most_common(1) if message]:  # it is there and could not be used
        return [f"nothing was examined: {reasons[0]}"]
    return ["nothing was examined: no check in this run is about anything that it provides"]


def _title(group: Sequence[Result]) -> str:
    first = group[0]
    cases = f", {len(group)} cases" if len(group) > 1 else ""
    return f"{first.claim} {first.verdict.value} ({first.impl}, {first.tier.value}{cases})"


def _fields(fields: Mapping[str, str], *, max_lines: int) -> Iterable[str]:
    width = max(len(name) for name in fields)
    for name, text in fields.items():
        lines = [part for line in _printable(text).splitlines() for part in _wrapped(line, name)]
        if len(lines) > max_lines:
            lines = [*lines[:max_lines], f"… {len(lines) - max_lines} more lines in the report"]
        for i, line in enumerate(lines):
            yield f"  {name if i == 0 else '':<{width}}  {line}"


def _wrapped(line: str, name: str) -> list[str]:
    """Lines of a readable width; a command stays in one piece."""
    return [line] if name == "rerun" else textwrap.wrap(line, PROSE_WIDTH, break_on_hyphens=False) or [""]


def _printable(text: str) -> str:
    """Text of a student's program without terminal escapes."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


def _align(cell: str, width: int, column: int) -> str:
    return f"{cell:<{width}}" if column < 3 else f"{cell:>{width}}"
