"""Honest denominators: from single results to one verdict per claim, implementation and tier, and to scores.

A claim stands for all its cases: one broken case breaks it. A tier is scored by itself. A claim that is shown under
two ids (``same_as``) is counted once. What was not decided (not checked, not provided, blocked…) is counted, and
visible, but is in no score's denominator.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.verdict import WORST_FIRST, Tier, Verdict

Report = dict[str, Any]

SUITE = "suite"  # answers for checks that examine no implementation: failure modes, models
NOT_RUN = "not-run"  # the ledger has the claim, this run did not choose it
TIERS = tuple(tier.value for tier in Tier)

ORDER = tuple(verdict.value for verdict in Verdict)  # in which verdicts are drawn: good, broken, then undecided
_PLACES = {verdict.value: place for place, verdict in enumerate(WORST_FIRST)}
BROKEN = frozenset(verdict.value for verdict in Verdict if verdict.is_broken)
ALARMING = frozenset(verdict.value for verdict in Verdict if not verdict.is_passing) - {Verdict.BLOCKED.value}
# The implementation was seen to do it or not to do it: the denominator of a score.
DECIDED = BROKEN | {Verdict.HOLDS.value, Verdict.DEVIATES.value, Verdict.REFUSES.value}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One claim, one implementation, one tier: the verdict over all cases."""

    tier: str
    verdict: str
    counts: tuple[tuple[str, int], ...]  # how many cases have which verdict, the worst first

    @property
    def named(self) -> tuple[str, ...]:
        """The verdicts under which a reader finds it: its own, and every bad one that its own would hide."""
        return tuple(verdict for verdict, _ in self.counts if verdict == self.verdict or verdict in ALARMING)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How many claims of one tier (or of all of them) have which verdict."""

    counts: dict[str, int]

    @property
    def holds(self) -> int:
        """How many claims hold."""
        return self.counts.get(Verdict.HOLDS.value, 0)

    @property
    def decided(self) -> int:
        """How many claims were put to the test and answered: the denominator of ``holds``."""
        return sum(count for verdict, count in self.counts.items() if verdict in DECIDED)

    @property
    def broken(self) -> int:
        """How many claims the implementation was seen to break."""
        return sum(count for verdict, count in self.counts.items() if verdict in BROKEN)

    @property
    def total(self) -> int:
        """How many claims there are, decided or not."""
        return sum(self.counts.values())

    def segments(self) -> list[tuple[str, int]]:
        """The verdicts that occur and their counts, in the order in which they are drawn."""
        return [(verdict, self.counts[verdict]) for verdict in (*ORDER, NOT_RUN) if self.counts.get(verdict)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ImplScore:
    """One implementation's scores: over the whole ledger, and tier by tier."""

    impl: str
    overall: Score
    tiers: dict[str, Score]


def worst(verdicts: Iterable[str]) -> str:
    """One verdict for many; NOT_RUN for none."""
    return min(verdicts, key=_PLACES.__getitem__, default=NOT_RUN)


def cells(report: Report) -> dict[tuple[str, str], list[Cell]]:
    """For each (claim, implementation) that has results: one cell for each tier, in the tiers' order."""
    verdicts: dict[tuple[str, str], dict[str, list[str]]] = {}
    for result in report["results"]:
        by_tier = verdicts.setdefault((result["claim"], result["impl"]), {})
        by_tier.setdefault(result["tier"], []).append(result["verdict"])
    return {key: [_cell(tier, by_tier[tier]) for tier in TIERS if tier in by_tier] for key, by_tier in verdicts.items()}


def _cell(tier: str, verdicts: list[str]) -> Cell:
    return Cell(tier=tier, verdict=worst(verdicts), counts=ordered(Counter(verdicts)))


def ordered(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The verdicts with how often each occurs, the worst first."""
    return tuple((verdict, counts[verdict]) for verdict in _PLACES if counts.get(verdict))


def counted_claims(report: Report) -> list[str]:
    """The ids that count: all but those that show another claim of the report a second time."""
    known = {claim["id"] for claim in report["claims"]}
    return [claim["id"] for claim in report["claims"] if claim["same_as"] not in known]


def suite_only(report: Report) -> set[str]:
    """The claims that the suite shows by itself and no implementation was asked about."""
    asked = {result["claim"] for result in report["results"] if result["impl"] != SUITE}
    return {result["claim"] for result in report["results"]} - asked


def implementations(report: Report) -> list[Report]:
    """The report's implementations without the suite's own column."""
    return [info for info in report["impls"] if info["name"] != SUITE]


def suite_score(report: Report) -> Score:
    """How many of the claims that the suite shows by itself have which verdict."""
    table, own = cells(report), suite_only(report)
    rows = [table.get((claim, SUITE), []) for claim in counted_claims(report) if claim in own]
    return Score(counts=dict(Counter(worst(cell.verdict for cell in row) for row in rows)))


def is_decided(report: Report) -> bool:
    """Whether any claim was put to the test and answered: without one, that nothing is in red says nothing."""
    return any(result["verdict"] in DECIDED for result in report["results"])


def scores(report: Report) -> list[ImplScore]:
    """The scores of each implementation, in the report's order, over the claims that are about implementations."""
    table, own = cells(report), suite_only(report)
    ids = [claim for claim in counted_claims(report) if claim not in own]
    found = []
    for info in implementations(report):
        name = info["name"]
        rows = [table.get((claim, name), []) for claim in ids]
        overall = Counter(worst(cell.verdict for cell in row) for row in rows)
        tiers = {tier: Counter(c.verdict for row in rows for c in row if c.tier == tier) for tier in TIERS}
        for counts in tiers.values():
            counts.pop(Verdict.NOT_CHECKED.value, None)  # without a check there is no tier
        found.append(
            ImplScore(
                impl=name,
                overall=Score(counts=dict(overall)),
                tiers={tier: Score(counts=dict(counts)) for tier, counts in tiers.items()},
            )
        )
    return found
