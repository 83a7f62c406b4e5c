"""An earlier report beside this one: which implementation is which, and what each verdict was before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports import score
from reports.reading import Key, key

Report = dict[str, Any]


def pairs(old: Report, new: Report, renamed: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the old name for each name of ``new`` that has one: ``{new: old}``.

    The same name is the same implementation, and ``renamed`` (``{old: new}``) says which others are. Where each report
    has one implementation and nothing was said, these two are meant: ``ddp_v2.py`` takes the place of ``ddp.py``.
    """
    before, now = _names(old), _names(new)
    if renamed:
        return {new_name: old_name for old_name, new_name in renamed.items()} | {
            name: name for name in now if name in before and name not in renamed and name not in renamed.values()
        }
    if len(before) == len(now) == 1:
        return {now[0]: before[0]}
    return {name: name for name in now if name in before}


def earlier(old: Report, names: Mapping[str, str]) -> dict[Key, Report]:
    """The old results under the keys that they have now; those of implementations without a pair are left out."""
    now = {old_name: new_name for new_name, old_name in names.items()} | {score.SUITE: score.SUITE}
    return {
        (result["claim"], result["case"], now[result["impl"]]): result
        for result in old["results"]
        if result["impl"] in now
    }


def with_before(report: Report, old: Report) -> Report:
    """Return ``report`` with the earlier verdict in each result, and where that is from."""
    before = earlier(old, pairs(old, report))
    results = [
        {**result, "before": before[key(result)]["verdict"] if key(result) in before else None}
        for result in report["results"]
    ]
    of = old["run"]
    source = {"id": of["id"], "started": of["started"], "command": of["command"], "git": old["suite"]["git"]}
    return {**report, "baseline": source, "results": results}


def _names(report: Report) -> list[str]:
    return [str(info["name"]) for info in score.implementations(report)]
