"""The failure modes of a run, by what is seen first."""

from __future__ import annotations

from typing import Any

Report = dict[str, Any]

SIGNS = ("hangs", "drifts", "wrong", "learns", "slow", "memory", "other")


def gallery(report: Report) -> list[tuple[str, list[Report]]]:
    """The stories of each sign, in the signs' order and the report's; what has no known sign comes last."""
    found: dict[str, list[Report]] = {sign: [] for sign in SIGNS}
    for story in report["scenarios"]:
        found[story.get("sign") if story.get("sign") in found else "other"].append(story)
    return [(sign, stories) for sign, stories in found.items() if stories]
