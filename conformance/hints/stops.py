"""What an exception's text says about the fault: the messages that torch and gloo have for the most frequent ones.

The first entry of ``stops.toml`` whose pattern is in what the ranks said is told, before the hint for its verdict.
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

from conformance.verdict import Result, Text, Verdict


def stop_signature(result: Result) -> Text | None:
    """Name the fault behind a crash by the words of the exception; None where they are not known, or nothing raised."""
    if result.verdict is not Verdict.CRASHES:
        return None
    said = "\n".join([result.message, *(part for rank in result.ranks for part in (rank.detail, rank.output))])
    return next(
        (text for claims, pattern, text in _stops() if result.claim.startswith(claims) and pattern.search(said)), None
    )


@functools.cache
def _stops() -> list[tuple[str, re.Pattern[str], Text]]:
    content = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return [
        (entry.get("claims", ""), re.compile(entry["said"]), Text(en=entry["en"], fa=entry["fa"]))
        for entry in content["stop"]
    ]
