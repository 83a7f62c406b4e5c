"""Two reports of the same suite: how their surroundings differ, and what became of each result.

A result is the same one in both where its key (claim, case, implementation) is. What changed follows from a table over
what the two verdicts amount to, so that nothing passes for mended that is merely no longer asked: a function that was
broken and is gone is not fixed, one that held and is gone is a regression.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from conformance.verdict import Verdict
from reports import baseline, score
from reports.reading import key

Report = dict[str, Any]


class Kind(StrEnum):
    """What became of a result, the most important first."""

    REGRESSED = "regressed"
    FIXED = "fixed"
    STILL_FAILING = "still failing"
    NOW_HOLDS = "now holds"  # was not provided, not checked, declared… and holds
    CHANGED = "otherwise changed"
    ADDED = "added"
    REMOVED = "removed"
    NOT_RUN_NOW = "not run now"
    SAME = "the same"


class Hindrance(StrEnum):
    """Why two reports cannot be compared."""

    NO_IMPLEMENTATION = "no implementation"  # in common
    NO_RESULT = "no result"  # in both


NOT_SAID = "not said"  # of what surrounds a run, by a report that lacks it


class _Says(StrEnum):
    """What a verdict amounts to."""

    HOLDS = "holds"
    DECLARED = "declared"  # does otherwise, or refuses, as it says beforehand
    ABSENT = "absent"
    OPEN = "open"
    FAILING = "failing"
    NOTHING = "nothing"  # the suite could not say


_SAYS = {
    Verdict.HOLDS: _Says.HOLDS,
    Verdict.DEVIATES: _Says.DECLARED,
    Verdict.REFUSES: _Says.DECLARED,
    Verdict.NOT_PROVIDED: _Says.ABSENT,
    Verdict.NOT_CHECKED: _Says.OPEN,
    Verdict.INCONCLUSIVE: _Says.OPEN,
    Verdict.VIOLATED: _Says.FAILING,
    Verdict.HANGS: _Says.FAILING,
    Verdict.CRASHES: _Says.FAILING,
    Verdict.BLOCKED: _Says.FAILING,
    Verdict.LOST: _Says.NOTHING,
    Verdict.SUITE_ERROR: _Says.NOTHING,
}
# What is not here is CHANGED where the verdicts differ.
_KINDS = {
    **{(said, _Says.FAILING): Kind.REGRESSED for said in (_Says.HOLDS, _Says.DECLARED, _Says.ABSENT, _Says.OPEN)},
    **{(_Says.HOLDS, said): Kind.REGRESSED for said in (_Says.DECLARED, _Says.ABSENT)},
    **{(_Says.FAILING, said): Kind.FIXED for said in (_Says.HOLDS, _Says.DECLARED)},
    **{(said, _Says.HOLDS): Kind.NOW_HOLDS for said in (_Says.DECLARED, _Says.ABSENT, _Says.OPEN)},
    **{(said, _Says.NOTHING): Kind.NOT_RUN_NOW for said in _Says if said is not _Says.NOTHING},
    (_Says.FAILING, _Says.FAILING): Kind.STILL_FAILING,
    (_Says.NOTHING, _Says.NOTHING): Kind.STILL_FAILING,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One result, before and now; ``before`` or ``now`` is empty where a report lacks it."""

    kind: Kind
    impl: str
    claim: str
    case: str
    before: str
    now: str
    result: Report  # the later one that there is


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All that differs between two reports."""

    old: Report
    new: Report
    environment: tuple[tuple[str, str, str], ...]  # name, old value, new value
    names: Mapping[str, str]  # {new implementation: old implementation}
    gone: tuple[str, ...]  # implementations that only the old report has
    come: tuple[str, ...]  # and that only the new one has
    changes: tuple[Change, ...]  # implementation by implementation, in the ledger's order

    def of(self, kind: Kind, impl: str | None = None) -> list[Change]:
        """The changes of one kind, of one implementation or of all."""
        return [change for change in self.changes if change.kind is kind and impl in (None, change.impl)]

    @property
    def hindrance(self) -> Hindrance | None:
        """What stands in the way of a comparison; None where nothing does."""
        if not self.names and (self.gone or self.come):
            return Hindrance.NO_IMPLEMENTATION
        return None if any(change.before and change.now for change in self.changes) else Hindrance.NO_RESULT

    @property
    def trouble(self) -> str:
        """Why the two cannot be compared, and what to do; empty where they can."""
        match self.hindrance:
            case Hindrance.NO_IMPLEMENTATION:
                old, new = (", ".join(names) or "none" for names in (self.gone, self.come))
                return (
                    f"the reports have no implementation in common (OLD: {old}; NEW: {new}). "
                    "If one took the place of another, say so: --impl OLD_NAME=NEW_NAME"
                )
            case Hindrance.NO_RESULT:
                return (
                    "no result is in both reports. Run the same claims again: pytest with the options of OLD's "
                    "run.command"
                )
        return ""

    @property
    def unsaid(self) -> list[Change]:
        """What passed before, and of which the new run lost the answer."""
        lost = (change for change in self.of(Kind.NOT_RUN_NOW) if change.now)
        return [change for change in lost if Verdict(change.before).is_passing]

    @property
    def exit_status(self) -> int:
        """1 on a regression; 2 when the reports cannot be compared, or the new run could not say; else 0."""
        if self.trouble:
            return 2
        if self.of(Kind.REGRESSED):
            return 1
        return 2 if self.unsaid else 0


def compare(old: Report, new: Report, renamed: Mapping[str, str] | None = None) -> Comparison:
    """Compare two valid reports; ``renamed`` has the new name of implementations that were called otherwise."""
    names = baseline.pairs(old, new, renamed)
    own = [info["name"] for info in score.implementations(new)]
    others = [info["name"] for info in score.implementations(old)]
    return Comparison(
        old=old,
        new=new,
        environment=tuple(_environment(old, new)),
        names=names,
        gone=tuple(name for name in others if name not in names.values()),
        come=tuple(name for name in own if name not in names),
        changes=tuple(sorted(_changes(old, new, names), key=_order(new, old))),
    )


def kind(before: str, now: str) -> Kind:
    """What it means that a verdict was ``before`` and is ``now``; both are there."""
    said = _SAYS[Verdict(before)], _SAYS[Verdict(now)]
    return _KINDS.get(said, Kind.SAME if before == now else Kind.CHANGED)


def _changes(old: Report, new: Report, names: Mapping[str, str]) -> Iterator[Change]:
    before = baseline.earlier(old, names)
    after = {key(result): result for result in new["results"]}
    chosen = {(result["claim"], result["impl"]) for result in new["results"]}
    known = {claim["id"] for claim in new["claims"]}
    for own, result in after.items():
        if own in before:
            was = before[own]["verdict"]
            yield _change(kind(was, result["verdict"]), own, was, result["verdict"], result)
        elif own[2] in names or own[2] == score.SUITE:
            yield _change(Kind.ADDED, own, "", result["verdict"], result)
    for own, result in before.items():
        if own not in after:
            is_gone = own[0] not in known or (new["run"].get("whole") is True and (own[0], own[2]) in chosen)
            yield _change(Kind.REMOVED if is_gone else Kind.NOT_RUN_NOW, own, result["verdict"], "", result)


def _change(found: Kind, own: tuple[str, str, str], before: str, now: str, result: Report) -> Change:
    claim, case, impl = own
    return Change(kind=found, impl=impl, claim=claim, case=case, before=before, now=now, result=result)


def _order(new: Report, old: Report) -> Any:
    impls = {name: i for i, name in enumerate(dict.fromkeys(info["name"] for info in new["impls"] + old["impls"]))}
    claims = {name: i for i, name in enumerate(dict.fromkeys(claim["id"] for claim in new["claims"] + old["claims"]))}
    return lambda change: (impls[change.impl], claims[change.claim])


def _environment(old: Report, new: Report) -> Iterator[tuple[str, str, str]]:
    """What may explain a difference that the implementation did not cause."""
    before, now = _surroundings(old), _surroundings(new)
    for name in dict.fromkeys([*before, *now]):
        was, is_now = before.get(name, NOT_SAID), now.get(name, NOT_SAID)
        if was != is_now:
            yield name, was, is_now


def _surroundings(report: Report) -> dict[str, str]:
    told = {f"suite {name}": value for name, value in report["suite"].items() if name != "name"}
    told |= {name.replace("_", " "): value for name, value in report["environment"].items()}
    told |= {"seed": report["run"]["seed"], "schema version": report["schema_version"]}
    if "rubric" in report:
        told["rubric"] = report["rubric"].get("sha256", "")
    return {name: _shown(value) for name, value in told.items()}


def _shown(value: Any) -> str:
    return ", ".join(map(_shown, value)) if isinstance(value, list) else str(value)
