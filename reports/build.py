"""report.json: from the record of a run to plain JSON values. ``reports.reading`` is the way back.

The shape is ``schema/report.schema.json``. Texts that an implementation had a hand in are made safe here, once, so that
the page and other tools read the same.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from conformance.verdict import SCHEMA_VERSION, Claim, ImplInfo, Record, Result, ScenarioStory, Text, to_json
from reports.reading import SCHEMA_PATH, InvalidReport, Key, Report, key, load, validate
from reports.text import LINE_LIMIT, NAME_LIMIT, OUTPUT_LIMIT, safe

__all__ = ["SCHEMA_PATH", "InvalidReport", "Report", "build", "dumps", "load", "validate"]


def build(record: Record) -> Report:
    """Turn the record of one run into the values of report.json."""
    report = {
        "schema_version": SCHEMA_VERSION,
        "suite": _plain(record.suite),
        "run": _plain(record.run),
        "environment": _plain(record.environment),
        "impls": [_impl(info) for info in record.impls],
        "claims": [_claim(claim) for claim in record.claims],
        "summary": {safe(impl, NAME_LIMIT): counts for impl, counts in record.summary().items()},
        "collected": record.collected,
        "reported": len(record.results),
        "results": _with_keys_of_their_own([_result(result) for result in record.results]),
        "scenarios": [_scenario(story) for story in record.scenarios],
    }
    if record.rubric is not None:
        report["rubric"] = _plain(record.rubric)
        report["score"] = {safe(impl, NAME_LIMIT): to_json(score) for impl, score in record.score.items()}
    return report


def dumps(report: Report) -> str:
    """Return report.json's text: UTF-8, indented, the same for the same report."""
    return json.dumps(report, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _impl(info: ImplInfo) -> Report:
    return {
        "name": safe(info.name, NAME_LIMIT),
        "path": safe(info.path, LINE_LIMIT),
        "sha256": info.sha256,
        "blocks": list(info.blocks),
        "error": safe(info.error),
    }


def _claim(claim: Claim) -> Report:
    fields = dict(to_json(claim))
    del fields["case_hints"]  # each result has the one for its case
    return fields


def _result(result: Result) -> Report:
    return {
        "claim": result.claim,
        "case": safe(result.case, NAME_LIMIT),
        "tier": result.tier.value,
        "impl": safe(result.impl, NAME_LIMIT),
        "verdict": result.verdict.value,
        "blocked_by": result.blocked_by,
        "duration_s": _finite(result.duration_s),
        "message": safe(result.message),
        "expected": safe(result.expected),
        "observed": safe(result.observed),
        "unit": safe(result.unit, NAME_LIMIT),
        "witness": result.witness,
        "examples": result.examples,
        "world_sizes": list(result.world_sizes),
        "hint": _text(result.hint),
        "ranks": [
            {
                "rank": rank.rank,
                "ending": safe(rank.ending, NAME_LIMIT),
                "detail": safe(rank.detail, OUTPUT_LIMIT),
                "output": safe(rank.output, OUTPUT_LIMIT),
            }
            for rank in result.ranks
        ],
        "timeline": None if result.timeline is None else safe(result.timeline, NAME_LIMIT),
        "rerun": safe(result.rerun),
        "data": _plain(result.data),
        **({} if result.reproduce is None else {"reproduce": safe(result.reproduce, NAME_LIMIT)}),
        **({} if result.no_script is None else {"no_script": _text(result.no_script)}),
    }


def _with_keys_of_their_own(results: list[Report]) -> list[Report]:
    """Number the cases that two checks of one claim call alike, or whose long names were cut to the same text."""
    seen: Counter[Key] = Counter()
    for result in results:
        own = key(result)
        seen[own] += 1
        if seen[own] > 1:
            result["case"] += f" #{seen[own]}"
    return results


def _scenario(story: ScenarioStory) -> Report:
    values = dict(to_json(story))
    values |= {key: _text(getattr(story, key)) for key in ("title", "symptom", "diagnosis", "cure")}
    values["evidence"] = [safe(line) for line in story.evidence]
    values["rerun"] = safe(story.rerun)
    return values


def _text(text: Text) -> Report:
    return {"en": safe(text.en), "fa": safe(text.fa)}


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _plain(value: Any) -> Any:
    """JSON values only: texts made safe, numbers that JSON lacks become null, anything else its text."""
    value = to_json(value)
    if isinstance(value, Mapping):
        return {safe(key, NAME_LIMIT): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    return safe(value)
