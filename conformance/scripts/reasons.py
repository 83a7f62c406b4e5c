"""Why a broken claim comes without a script: its card says so in one sentence, from ``reasons.toml``."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from conformance.reproduce import has_case, has_line
from conformance.scripts.opening import HOME
from conformance.verdict import Result, Text


def why_none(result: Result, asks: Sequence[str]) -> Text:
    """The reason for a broken case that has no script, though a script may be for others of its claim."""
    if has_case(result, asks):
        return _told("hand-in")
    for reason in _reasons():
        claims, cases = reason.get("claims"), reason.get("cases", "")
        if claims and re.fullmatch(claims, result.claim) and re.search(cases, result.case):
            return Text(en=reason["en"], fa=reason["fa"])
    return _told("case" if has_line(result.claim) else "claim")


def _told(when: str) -> Text:
    reason = next(reason for reason in _reasons() if reason.get("when") == when)
    return Text(en=reason["en"], fa=reason["fa"])


@functools.cache
def _reasons() -> tuple[dict[str, Any], ...]:
    return tuple(tomllib.loads((HOME / "reasons.toml").read_text(encoding="utf-8"))["reason"])
