"""From how a check ended to its verdict: the one place where an exception becomes a verdict.

What the check raised on purpose (Broken) speaks about the implementation; whatever else goes wrong in a check is the
suite's own error and never held against the implementation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from conformance.checks import Description, failure_text, verdict_of
from conformance.journal import Planned
from conformance.judge import Broken, Judge, merged
from conformance.last_words import kept
from conformance.verdict import Evidence, RankReport, Result, Verdict, to_json
from fixtures.world.outcome import Ending, Outcome, Outcomes, RanksFailed

NO_EVIDENCE = "the check ended without putting down any evidence, so it says nothing"
STALE = "the manifest is stale: it declares that this claim is not held ({reason}), and the claim holds"
MAX_OUTPUT = 4_000  # characters of a rank's output on the evidence card
MAX_OPERATIONS = 2_000  # per rank in a timeline


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The verdict of one check with what stands behind it."""

    verdict: Verdict
    message: str = ""
    evidence: Evidence | None = None
    outcomes: Outcomes | None = None


def rule(error: BaseException | None, judge: Judge | None, description: Description | None, claim: str) -> Ruling:
    """Give the verdict of a check that raised ``error``, or nothing."""
    ruling = _of_error(error) if error is not None else _of_evidence(judge)
    return ruling if description is None else _as_declared(ruling, description, claim)


def _of_error(error: BaseException) -> Ruling:
    match error:
        case Broken():
            return Ruling(
                verdict=error.verdict, message=error.message, evidence=error.evidence, outcomes=error.outcomes
            )
        case RanksFailed():
            verdict = verdict_of(error.outcomes) or Verdict.SUITE_ERROR
            return Ruling(verdict=verdict, message=failure_text(error.outcomes), outcomes=error.outcomes)
        case pytest.skip.Exception():
            return Ruling(verdict=Verdict.INCONCLUSIVE, message=str(error.msg))
    notes = getattr(error, "__notes__", [])
    text = "\n".join([f"{type(error).__name__}: {error}", *notes])
    return Ruling(verdict=Verdict.SUITE_ERROR, message=f"the check itself failed: {text}")


def _of_evidence(judge: Judge | None) -> Ruling:
    evidence = None if judge is None else merged(judge.evidence, judge.examples_tried)
    if evidence is None:
        return Ruling(verdict=Verdict.SUITE_ERROR, message=NO_EVIDENCE)
    return Ruling(verdict=Verdict.HOLDS, message=evidence.message, evidence=evidence)


def _as_declared(ruling: Ruling, description: Description, claim: str) -> Ruling:
    """What the manifest declares beforehand: deviations, and what is refused cleanly on every rank."""
    if ruling.verdict.is_broken and claim in description.deviates:
        return dataclasses.replace(
            ruling, verdict=Verdict.DEVIATES, message=_declared(description.deviates[claim], ruling.message)
        )
    refused = ruling.outcomes is not None and all(outcome.ending is Ending.RAISED for outcome in ruling.outcomes)
    if ruling.verdict is Verdict.CRASHES and refused and claim in description.refuses:
        return dataclasses.replace(
            ruling, verdict=Verdict.REFUSES, message=_declared(description.refuses[claim], ruling.message)
        )
    return ruling


def _declared(entry: Mapping[str, str], observed: str) -> str:
    source = f" [{entry['source']}]" if entry.get("source") else ""
    return f"declared: {entry.get('reason', '')}{source}. Observed: {observed}"


def to_result(ruling: Ruling, planned: Planned, judge: Judge | None, *, duration_s: float) -> Result:
    """Put a ruling into the form that the report is made from."""
    evidence = ruling.evidence
    data: dict[str, Any] = dict(evidence.data) if evidence else {}
    if judge is not None and judge.surveyed and ruling.verdict.is_broken:
        data["cases"] = judge.surveyed
    shown = ruling.outcomes or (judge.shown if judge else None)
    if shown is not None and "timeline" not in data:
        data["timeline"] = timeline(shown)
    tried = judge.examples_tried if judge else 0
    return Result(
        claim=planned.claim,
        case=planned.case,
        tier=planned.tier,
        impl=planned.impl,
        verdict=ruling.verdict,
        duration_s=round(duration_s, 4),
        message=ruling.message,
        expected=evidence.expected if evidence else "",
        observed=evidence.observed if evidence else "",
        unit=evidence.unit if evidence else "",
        witness=evidence.witness.value if evidence else "",
        examples=evidence.examples if evidence and ruling.verdict is Verdict.HOLDS else tried,
        data=data,
        ranks=() if ruling.outcomes is None else tuple(map(_rank, ruling.outcomes)),
        rerun=planned.rerun,
    )


def timeline(outcomes: Outcomes) -> dict[str, Any]:
    """Operations and marks of every rank, as the report's timeline takes them."""
    return {
        str(outcome.rank): {
            "operations": to_json(outcome.operations[:MAX_OPERATIONS]),
            "marks": to_json(outcome.marks[:MAX_OPERATIONS]),
        }
        for outcome in outcomes
    }


def _rank(outcome: Outcome) -> RankReport:
    detail = outcome.describe()
    if outcome.raised is not None:
        detail = f"{detail}\n{outcome.raised.traceback}"
    elif outcome.hang is not None:
        detail = f"{detail}\n{outcome.hang.verdict}\n{outcome.hang.stack}"
    return RankReport(
        rank=outcome.rank, ending=outcome.ending.value, detail=detail, output=kept(outcome.output, MAX_OUTPUT)
    )
