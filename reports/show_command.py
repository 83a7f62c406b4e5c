"""The command ``python -m reports show REPORT CLAIM``."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports import paper, reading, show
from reports.trouble import Unusable

Report = dict[str, Any]


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("show", help="the card of one claim, in the terminal")
    parser.add_argument("report", type=Path, metavar="REPORT", help="report.json, or the folder that holds it")
    parser.add_argument("claim", metavar="CLAIM", help="its id")
    parser.add_argument("--case", metavar="TEXT", help="only cases with this text in their name")
    parser.add_argument("--impl", metavar="NAME", help="only this implementation")
    parser.add_argument("--lang", choices=("en", "fa"), default="en", help="language of claims and hints")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the card; raises Unusable for a claim, case or implementation that the report does not have."""
    report = reading.load(options.report)
    claims = {claim["id"]: claim for claim in report["claims"]}
    if options.claim not in claims:
        raise Unusable(_unknown("claim", options.claim, list(claims)))
    claim = claims[options.claim]
    found = [result for result in report["results"] if result["claim"] == claim["id"]]
    if not found and claim["same_as"]:  # a fact under a second id has its results under the first
        found = [result for result in report["results"] if result["claim"] == claim["same_as"]]
    found = _chosen("implementation", options.impl, found, "impl")
    found = _chosen("case", options.case, found, "case")
    print("\n".join(show.card(report, claim, found, paper.columns(), options.lang)).rstrip())
    return 0


def _chosen(what: str, asked: str | None, results: Sequence[Report], field: str) -> list[Report]:
    """Those with this name, or with this text in it."""
    if asked is None:
        return list(results)
    names = list(dict.fromkeys(result[field] for result in results))
    wanted = [name for name in names if name == asked] or [name for name in names if asked in name]
    if not wanted:
        raise Unusable(_unknown(what, asked, names))
    return [result for result in results if result[field] in wanted]


def _unknown(what: str, asked: str, names: Sequence[str], most: int = 8) -> str:
    near = difflib.get_close_matches(asked, names, n=1, cutoff=0.4)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
    return paper.line(f"the report has no {what} {asked!r}.{meant} It has: {listed or 'none'}")
