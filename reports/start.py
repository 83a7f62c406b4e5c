"""Where a reader starts: the most upstream failure of an implementation, and how many claims wait behind it.

A claim waits when its cases are ``blocked`` by one that it needs: mending that one alone may turn all of them. Of
several failures that no other explains, one of the implementation comes before one of the suite, a core one before
others, then the one with more claims behind it, then the ledger's order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.verdict import Verdict
from reports import score

Report = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One implementation's first thing to mend. `waiting`: ids of the claims behind it, in the ledger's order."""

    impl: str
    claim: Report
    verdict: str
    tier: str
    waiting: tuple[str, ...]
    rerun: str

    @property
    def behind(self) -> str:
        """How many claims wait, to go on a sentence with; empty where none does."""
        count = len(self.waiting)
        if not count:
            return ""
        return f"; {count} more claims wait behind it" if count > 1 else "; 1 more claim waits behind it"


def start(report: Report, impl: str) -> Start | None:
    """The failure that ``impl`` should look at first; None where nothing of it is in red."""
    broken: dict[str, list[Report]] = {}
    lost: dict[str, list[Report]] = {}
    behind: dict[str, set[str]] = {}
    for result in report["results"]:
        if result["impl"] != impl:
            continue
        if result["verdict"] == Verdict.LOST.value:
            lost.setdefault(result["claim"], []).append(result)
        elif result["verdict"] in score.ALARMING:
            broken.setdefault(result["claim"], []).append(result)
        elif result["blocked_by"]:
            behind.setdefault(result["blocked_by"], set()).add(result["claim"])
    broken = broken or lost  # of what was lost nothing is known: it explains no failure, and hides none
    if not broken:
        return None
    claims = {claim["id"]: claim for claim in report["claims"]}
    place = {name: number for number, name in enumerate(claims)}
    tiers = {name: min(score.TIERS.index(result["tier"]) for result in broken[name]) for name in broken}
    # A claim that is broken beyond plain use only explains no plain failure.
    roots = [
        name
        for name in broken
        if all(tiers.get(one, len(score.TIERS)) > tiers[name] for one in _upstream(name, claims))
    ] or list(broken)
    waiting = {root: behind.get(root, set()) - broken.keys() for root in roots}

    def key(name: str) -> tuple[bool, int, int, int]:
        is_ours = not any(result["verdict"] in score.BROKEN for result in broken[name])
        return is_ours, tiers[name], -len(waiting[name]), place[name]

    first = min(roots, key=key)
    tier = score.TIERS[tiers[first]]
    cases = [result for result in broken[first] if result["tier"] == tier]
    verdict = score.worst(result["verdict"] for result in cases)
    return Start(
        impl=impl,
        claim=claims[first],
        verdict=verdict,
        tier=tier,
        waiting=tuple(sorted(waiting[first], key=place.__getitem__)),
        rerun=next(result["rerun"] for result in cases if result["verdict"] == verdict),
    )


def starts(report: Report) -> list[Start]:
    """The first thing to mend of every implementation that has one, in the report's order."""
    names = [info["name"] for info in report["impls"]]
    return [found for name in names if (found := start(report, name)) is not None]


def _upstream(name: str, claims: Mapping[str, Report]) -> set[str]:
    """All claims that ``name`` needs, and that those need; not itself."""
    seen: set[str] = set()
    frontier: Iterable[str] = [name]
    while frontier := [
        need for one in frontier if one in claims for need in claims[one]["needs"] if need not in seen | {name}
    ]:
        seen.update(frontier)
    return seen
