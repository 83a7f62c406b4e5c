"""The rows of the page: sections with their claims, the evidence of each cell put together, and what is broken.

Cases that say the same are shown together, each distinct hint once; report.json keeps every result by itself.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import shlex
from collections import Counter
from collections.abc import Iterable
from typing import Any

from conformance.verdict import WORST_FIRST, Verdict
from reports import score

Report = dict[str, Any]

LOST = Verdict.LOST.value
NOT_CHECKED = Verdict.NOT_CHECKED.value
# Shown one by one and at length; the cases of one check with any other verdict share a line.
LOUD = score.ALARMING | {Verdict.BLOCKED.value, Verdict.DEVIATES.value}
MANY_BROKEN = 10  # more are folded away below the first ones
_COMMAND_LIMIT = 1_000  # characters of a command that runs several cases again


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Cases that are shown together: one loud result, or all quiet ones of a check with one verdict."""

    results: tuple[Report, ...]

    @property
    def first(self) -> Report:
        """The result that stands for all."""
        return self.results[0]

    @property
    def is_loud(self) -> bool:
        """Whether the page shows it at length."""
        return self.first["verdict"] in LOUD

    @property
    def name(self) -> str:
        """The case's name, without the parameters where several cases differ in them."""
        return str(self.first["case"] if len(self.results) == 1 else _check(self.first))

    @property
    def message(self) -> str:
        """What all cases say; nothing where they say different things."""
        return str(self.first["message"]) if len({result["message"] for result in self.results}) == 1 else ""

    @property
    def command(self) -> str:
        """What runs all cases again, or the first of them where one command for all would be too long."""
        if len(self.results) == 1:
            return str(self.first["rerun"])
        parts = [_split(result["rerun"]) for result in self.results]
        program, options = parts[0][:1], parts[0][2:]
        if program == ["pytest"] and all(part[:1] == program and part[2:] == options for part in parts):
            command = shlex.join([*program, *dict.fromkeys(part[1] for part in parts), *options])
            if len(command) <= _COMMAND_LIMIT:
                return command
        return str(self.first["rerun"])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """One claim that one implementation breaks, over all tiers."""

    impl: str
    claim: Report
    verdict: str
    counts: tuple[tuple[str, int], ...]  # of the cases, the broken ones only


def sections(report: Report) -> list[dict[str, Any]]:
    """The ledger's sections with their claims: what was checked first, then what was not, each in ledger order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(report):
        found.setdefault(row["claim"]["section"], []).append(row)
    built = []
    for section, rows in found.items():
        checked = [row for row in rows if row["state"] == "checked"]
        later = [row for row in rows if row["state"] != "checked"]
        states = Counter(row["state"] for row in later)
        built.append({"id": section, "rows": checked + later, "idle": not checked, "later": dict(states)})
    return sorted(built, key=lambda section: bool(section["idle"]))  # what was checked comes first


def _rows(report: Report) -> Iterable[dict[str, Any]]:
    cells = score.cells(report)
    results: dict[tuple[str, str], list[Report]] = {}
    for result in report["results"]:
        results.setdefault((result["claim"], result["impl"]), []).append(result)
    claims = {claim["id"]: claim for claim in report["claims"]}
    names = [info["name"] for info in score.implementations(report)]
    own_shows = score.suite_only(report)
    for claim in report["claims"]:
        # A fact under a second id shows what is known under the first, unless it was checked by itself.
        twin = claim["same_as"] if claim["same_as"] in claims else None
        columns = []
        # What the suite shows by itself takes one wide cell.
        wide = claim["id"] in own_shows or (twin is not None and twin in own_shows)
        for name in [score.SUITE] if wide else names:
            own = (claim["id"], name)
            borrowed = twin is not None and not _says_something(cells.get(own, []))
            key = (twin or claim["id"], name) if borrowed else own
            found = results.get(key, [])
            columns.append(
                {"impl": name, "cells": cells.get(key, []), "borrowed": borrowed, "changed": any(map(_changed, found))}
                | _evidence(found)
            )
        yield {
            "claim": claim,
            "twin": twin,
            "wide": wide,
            "columns": columns,
            "state": _state(columns),
            "search": _search_text(claim),
            "killed_by": claim["killed_by"] or (claims[twin]["killed_by"] if twin else []),
        }


def _evidence(results: list[Report]) -> dict[str, Any]:
    ordered = _worst_first(results)
    return {"bundles": bundles(ordered), "hints": hints(ordered)}


def _changed(result: Report) -> bool:
    """Whether an earlier report, which the run was given as its baseline, has another verdict for this case."""
    return result.get("before") not in (None, result["verdict"])


def bundles(results: Iterable[Report]) -> list[Bundle]:
    """Put the quiet cases of one check, tier and verdict together, where the first of them stands."""
    found: dict[tuple[Any, ...], list[Report]] = {}
    for number, result in enumerate(results):
        if result["verdict"] == NOT_CHECKED:
            continue  # nothing ran
        alone = result["verdict"] in LOUD or result["ranks"] or result["timeline"] or result["data"].get("gantt")
        key = (number,) if alone else (result["tier"], result["verdict"], _check(result))
        found.setdefault(key, []).append(result)
    return [Bundle(results=tuple(group)) for group in found.values()]


def hints(results: Iterable[Report]) -> list[tuple[list[str], Report]]:
    """Return each distinct hint of broken results, with the verdicts that it is for."""
    found: dict[str, tuple[list[str], Report]] = {}
    for result in results:
        text = result["hint"]
        if result["verdict"] in score.BROKEN and text["en"]:
            verdicts, _ = found.setdefault(text["en"], ([], text))
            if result["verdict"] not in verdicts:
                verdicts.append(result["verdict"])
    return list(found.values())


def ranks_alike(ranks: Iterable[Report]) -> list[tuple[list[int], Report]]:
    """Put ranks together that ended in the same way, but for the rank's own number in the words."""
    found: dict[tuple[str, str, str], tuple[list[int], Report]] = {}
    for rank in ranks:
        own = re.compile(rf"\brank {rank['rank']}\b")
        key = (rank["ending"], own.sub("rank N", rank["detail"]), rank["output"])
        found.setdefault(key, ([], rank))[0].append(rank["rank"])
    return list(found.values())


def broken(built: Iterable[dict[str, Any]]) -> list[Broken]:
    """What ``sections`` shows in red, one entry for each claim and implementation, implementation by implementation.

    Without what was lost: nothing is known of it, and an interrupted run would list the whole ledger.
    """
    found = []
    for row in itertools.chain.from_iterable(section["rows"] for section in built):
        for column in row["columns"]:
            counts: Counter[str] = Counter()
            for cell in column["cells"]:
                counts.update({name: count for name, count in cell.counts if name in score.ALARMING and name != LOST})
            if not counts or column["borrowed"]:
                continue
            verdict = score.worst(counts)
            entry = Broken(impl=column["impl"], claim=row["claim"], verdict=verdict, counts=score.ordered(counts))
            found.append(entry)
    impls = list(dict.fromkeys(entry.impl for entry in found))
    return sorted(found, key=lambda entry: impls.index(entry.impl))


def blocked(built: Iterable[dict[str, Any]]) -> int:
    """How many cells say no more than that something else is broken."""
    columns = (column for section in built for row in section["rows"] for column in row["columns"])
    return sum(
        not column["borrowed"] and score.worst(cell.verdict for cell in column["cells"]) == Verdict.BLOCKED.value
        for column in columns
    )


def not_run(built: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many claims this run says nothing about, by reason: ``not-run`` (not chosen) or ``open`` (no check yet).

    Counted as the scores are: a claim that is shown under a second name is one.
    """
    rows = (row for section in built for row in section["rows"] if row["twin"] is None)
    return dict(Counter(row["state"] for row in rows if row["state"] != "checked"))


def _state(columns: list[dict[str, Any]]) -> str:
    """``checked``; ``open``, for which there is no check yet; or ``not-run``, which this run did not choose."""
    cells = [cell for column in columns for cell in column["cells"]]
    if _says_something(cells):
        return "checked"
    return "open" if cells else "not-run"


def _says_something(cells: list[score.Cell]) -> bool:
    return any(cell.verdict != NOT_CHECKED for cell in cells)


def _worst_first(results: list[Report]) -> list[Report]:
    place = {verdict: index for index, verdict in enumerate(WORST_FIRST)}
    return sorted(results, key=lambda result: (score.TIERS.index(result["tier"]), place[result["verdict"]]))


def _search_text(claim: Report) -> str:
    parts = [claim["id"], claim["formula"], *claim["text"].values(), *claim["statement"].values(), claim["source"]]
    return " ".join(parts).lower()


def _check(result: Report) -> str:
    """The check behind a case: its name without the parameters."""
    return str(result["case"]).partition("[")[0]


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an implementation's name may hold a quote
        return []
