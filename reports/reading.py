"""Reading a report.json: every rule checked, those of the schema and those that a schema cannot say.

The version rule, in ``docs/reports.md`` too: a minor version only adds properties that need not be there, so a reader
takes any minor version of its own major one and passes over what it does not know. A major version changes or removes
something, or adds a word (a verdict, a tier, a witness) or a required property: such a report is refused by name.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import re
import stat
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types

from conformance.verdict import SCHEMA_VERSION
from reports.shape import Fits, compiled

SCHEMA_PATH = Path(__file__).parent / "schema" / "report.schema.json"
FILE_NAME = "report.json"
MAX_BYTES = 512 * 2**20  # 20,000 results have 15 MB

Report = dict[str, Any]
Key = tuple[str, str, str]


class InvalidReport(ValueError):
    """A report.json that breaks the schema or contradicts itself; the text names the place."""


class UnknownVersion(InvalidReport):
    """A report of another major version; the text says which Lockstep can read it."""


def load(path: Path) -> Report:
    """Read and validate a report.json, or the one in a report folder. Raises InvalidReport, whatever is wrong."""
    if path.is_dir():
        path = path / FILE_NAME
    try:
        _check_size(path)
        text = path.read_text(encoding="utf-8")
        report = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except InvalidReport:
        raise
    except OSError as error:
        raise InvalidReport(f"{path} could not be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidReport(f"{path} is not JSON: {error}") from error
    try:
        validate(report)
    except UnknownVersion as error:
        raise UnknownVersion(f"{path}: {error}") from None
    except InvalidReport as error:
        raise InvalidReport(f"{path}: {error}") from None
    return dict(report)


def validate(report: Any) -> None:
    """Raise InvalidReport unless ``report`` follows the schema and does not contradict itself."""
    is_newer = _is_of_a_newer_minor_version(report)
    if not _fits(is_newer)(report):
        raise InvalidReport(_first_fault(report, is_newer))
    for contradiction in _contradictions(report):
        raise InvalidReport(f"report.json contradicts itself: {contradiction}")


def key(result: Report) -> Key:
    """What stays the same from run to run: ``(claim, case, impl)``, once in each report."""
    return result["claim"], result["case"], result["impl"]


def _check_size(path: Path) -> None:
    """A pipe would never end, and what is larger than any report is none."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise InvalidReport(f"{path} is no regular file")
    if found.st_size > MAX_BYTES:
        raise InvalidReport(f"{path} has {found.st_size:,} bytes: no report is as large as that")


def _no_constant(name: str) -> None:
    raise ValueError(f"it has the number {name}")  # Python reads it, JSON does not have it


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"it has the number {digits[:40]}, which is too large")
    return number


@functools.cache
def schema() -> Report:
    """Return report.json's schema."""
    return dict(json.loads(SCHEMA_PATH.read_text(encoding="utf-8")))


def _is_of_a_newer_minor_version(report: Any) -> bool:
    """Whether to pass over properties that are not known. Raises UnknownVersion for another major version."""
    version = report.get("schema_version") if isinstance(report, dict) else None
    parts = re.fullmatch(r"([0-9]{1,6})\.([0-9]{1,6})", version) if isinstance(version, str) else None
    if parts is None:
        raise InvalidReport("report.json has no schema_version such as 1.0: it is not a report of Lockstep")
    major, minor = map(int, parts.groups())
    own_major, own_minor = map(int, SCHEMA_VERSION.split("."))
    if major != own_major:
        age, cure = (
            ("newer", "update Lockstep") if major > own_major else ("older", "read it with the one that wrote it")
        )
        raise UnknownVersion(
            f"report.json has schema_version {version}, of {'a' if age == 'newer' else 'an'} {age} Lockstep; this one "
            f"reads {own_major}.x: {cure}"
        )
    return minor > own_minor


@functools.cache
def _fits(is_open: bool) -> Fits:
    return compiled(schema(), is_open=is_open)


def _first_fault(report: Any, is_open: bool) -> str:
    """The place of the first fault in words; slow, so for broken reports only."""
    rules = _opened(schema()) if is_open else schema()
    errors = sorted(
        jsonschema.Draft202012Validator(rules).iter_errors(report),
        key=lambda error: list(map(str, error.absolute_path)),
    )
    first, more = errors[0], len(errors) - 1
    also = f" (and {more} more)" if more else ""
    return f"report.json, at {first.json_path}: {first.message[:400]}{also}"


def _opened(rules: Any) -> Any:
    """The same schema, with objects that may have more properties."""
    if isinstance(rules, list):
        return [_opened(rule) for rule in rules]
    if not isinstance(rules, dict):
        return copy.copy(rules)
    return {name: _opened(rule) for name, rule in rules.items() if (name, rule) != ("additionalProperties", False)}


def _contradictions(report: Report) -> list[str]:
    claims = {claim["id"] for claim in report["claims"]}
    impls = {info["name"] for info in report["impls"]}
    results = report["results"]
    counted: dict[str, dict[str, int]] = {name: {} for name in impls}
    keys: set[Key] = set()
    found = []
    for result in results:
        counts = counted.setdefault(result["impl"], {})
        counts[result["verdict"]] = counts.get(result["verdict"], 0) + 1
        if key(result) in keys:
            found.append(f"two results have the key {' / '.join(key(result))}")
        keys.add(key(result))
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
