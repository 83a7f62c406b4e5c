"""The command ``python -m reports merge FOLDER_OR_REPORT...``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports import merge_tables, paper, tables_html
from reports.files import refuse_to_replace, write_together
from reports.merge import merge, remarked
from reports.trouble import Unusable

CSV, PAGE = "class.csv", "class.html"  # in the folder of --out
_EPILOG = """\
exit status: 0 all reports are in the matrix; 1 those that are not, or not like the others, are named, and the rest is
merged; 2 there is nothing to merge, or the command line or a place to write cannot be used."""


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "merge",
        help="many hand-ins as one matrix, and as CSV for the grade book",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="FOLDER_OR_REPORT",
        help="report.json files, and folders: every report.json below them",
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=f"write {CSV} and {PAGE} there")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the CSV there")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page there")
    parser.add_argument(
        "--columns",
        choices=("sections", "claims"),
        default="sections",
        help="what the columns are (default: sections)",
    )
    parser.add_argument(
        "--remarks",
        type=Path,
        metavar="FILE",
        help="JSON, {name: [sentences]}: what is said of the rows of these names; a name without a row gets one",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Merge, write, print, and return the exit status."""
    matrix = merge(options.paths)
    if options.remarks is not None:
        matrix = remarked(matrix, _remarks(options.remarks))
    if not matrix.rows:
        raise Unusable("\n  ".join(["no report could be merged", *map(paper.line, matrix.trouble)]))
    by_claim = options.columns == "claims"
    texts: dict[Path, str] = {}
    csv_at = options.csv or (options.out / CSV if options.out else None)
    if csv_at is not None:
        texts[csv_at] = merge_tables.as_csv(matrix, by_claim=by_claim)
    page_at = options.html or (options.out / PAGE if options.out else None)
    if page_at is not None:
        texts[page_at] = tables_html.merged(matrix, by_claim=by_claim)
    refuse_to_replace(texts, (Path(row.report) for row in matrix.rows))
    print(merge_tables.as_text(matrix, paper.columns()), end="", flush=True)
    for sentence in matrix.trouble:
        print(paper.line(sentence), file=sys.stderr)
    if texts:
        write_together(texts)
    for path in texts:
        print(f"written: {paper.line(path)}")
    return 1 if matrix.trouble else 0


def _remarks(path: Path) -> Mapping[str, Sequence[str]]:
    try:
        return {str(name): [*map(str, told)] for name, told in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Unusable(f"--remarks={path}: it is to be JSON, {{name: [sentences]}}: {error}") from None
