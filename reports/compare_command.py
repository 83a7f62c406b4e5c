"""The command ``python -m reports compare OLD NEW``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from reports import compare_text, paper, reading, score, tables_html
from reports.compare import compare
from reports.files import refuse_to_replace, write_whole
from reports.trouble import Unusable

_EPILOG = """\
exit status: 0 nothing regressed; 1 something did; 2 the reports cannot be compared, and why is said."""


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compare",
        help="what became of each result between two reports",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="report.json, or the folder that holds it")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument(
        "--impl",
        action="append",
        default=[],
        metavar="OLD_NAME=NEW_NAME",
        help="an implementation that is called otherwise in NEW; repeatable",
    )
    parser.add_argument("--all", action="store_true", help="list every claim that changed")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the comparison there as a page as well")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, print, and return the exit status."""
    if options.html is not None:
        sources = (path / reading.FILE_NAME if path.is_dir() else path for path in (options.old, options.new))
        refuse_to_replace([options.html], sources)
    old, new = reading.load(options.old), reading.load(options.new)
    found = compare(old, new, _renamed(options.impl, old, new))
    print(compare_text.text(found, paper.columns(), everything=options.all), end="", flush=True)
    if options.html is not None:
        write_whole(options.html, tables_html.compared(found))
        print(f"\nwritten: {paper.line(options.html)}")
    return found.exit_status


def _renamed(asked: list[str], old: Any, new: Any) -> dict[str, str]:
    names = {
        side: [info["name"] for info in score.implementations(report)] for side, report in (("OLD", old), ("NEW", new))
    }
    renamed = {}
    for pair in asked:
        old_name, equals, new_name = pair.partition("=")
        if not equals:
            raise Unusable(f"--impl={pair} is not OLD_NAME=NEW_NAME")
        for side, name in (("OLD", old_name), ("NEW", new_name)):
            if name not in names[side]:
                raise Unusable(f"{side} has no implementation {name!r}. It has: {', '.join(names[side]) or 'none'}")
        renamed[old_name] = new_name
    return renamed
