"""report.json: from the record of a run to plain JSON values, and back with every rule checked.

The shape is ``schema/report.schema.json``; what a schema cannot say (what was collected was reported, every result
names a claim and an implementation of the report) is checked beside it. Texts that an implementation had a hand in are
made safe here, once, so that the page and other tools read the same.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types

from conformance.verdict import SCHEMA_VERSION, Claim, ImplInfo, Record, Result, ScenarioStory, Text, to_json
from reports.text import LINE_LIMIT, NAME_LIMIT, OUTPUT_LIMIT, safe

SCHEMA_PATH = Path(__file__).parent / "schema" / "report.schema.json"

Report = dict[str, Any]


class InvalidReport(ValueError):
    """A report.json that breaks the schema or contradicts itself; the text names the place."""


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
        "results": [_result(result) for result in record.results],
        "scenarios": [_scenario(story) for story in record.scenarios],
    }
    if record.rubric is not None:
        report["rubric"] = _plain(record.rubric)
        report["score"] = {safe(impl, NAME_LIMIT): to_json(score) for impl, score in record.score.items()}
    return report


def dumps(report: Report) -> str:
    """Return report.json's text: UTF-8, indented, the same for the same report."""
    return json.dumps(report, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def load(path: Path) -> Report:
    """Read and validate a report.json. Raises InvalidReport, whatever is wrong with the file."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidReport(f"{path} could not be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidReport(f"{path} is not JSON: {error}") from error
    validate(report)
    return dict(report)


def validate(report: Any) -> None:
    """Raise InvalidReport unless ``report`` follows the schema and does not contradict itself."""
    errors = sorted(_validator().iter_errors(report), key=lambda error: list(map(str, error.absolute_path)))
    if errors:
        first, more = errors[0], len(errors) - 1
        place = first.json_path
        also = f" (and {more} more)" if more else ""
        raise InvalidReport(f"report.json, at {place}: {first.message[:400]}{also}")
    for contradiction in _contradictions(report):
        raise InvalidReport(f"report.json contradicts itself: {contradiction}")


@functools.cache
def _validator() -> Any:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _contradictions(report: Report) -> list[str]:
    claims = {claim["id"] for claim in report["claims"]}
    impls = {info["name"] for info in report["impls"]}
    results = report["results"]
    counted: dict[str, dict[str, int]] = {name: {} for name in impls}
    for result in results:
        counts = counted.setdefault(result["impl"], {})
        counts[result["verdict"]] = counts.get(result["verdict"], 0) + 1
    found = []
    if len(claims) != len(report["claims"]):
        found.append("a claim is listed twice")
    if len(impls) != len(report["impls"]):
        found.append("an implementation is listed twice")
    if report["reported"] != len(results):
        found.append(f"reported says {report['reported']}, but there are {len(results)} results")
    if report["collected"] != report["reported"]:
        found.append(f"{report['collected']} results were collected, but {report['reported']} are reported")
    if report["summary"] != counted:
        found.append("summary does not count the results")
    found += [f"a result names the unknown claim {r['claim']}" for r in results if r["claim"] not in claims]
    found += [f"a result names the unknown implementation {r['impl']}" for r in results if r["impl"] not in impls]
    return found


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
    }


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
