"""A class matrix as CSV for the grade book, and as a table for the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from conformance.verdict import points_told
from reports import paper, score
from reports.merge import Matrix, Points, Row

SHOWN = 40  # rows in the terminal
NAME = 30  # columns of a name there
# A spreadsheet takes what begins like this for a formula, also after blanks and in full width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def as_csv(matrix: Matrix, *, by_claim: bool = False) -> str:
    """Return a head and a line for each row (RFC 4180): figures, and texts that no spreadsheet takes for formulas.

    ``by_claim``: a column with the verdict of each claim, in place of two with the figures of each section.
    """
    has_points = any(row.points for row in matrix.rows)
    stream = io.StringIO()
    writer = csv.writer(stream)
    head = _head(matrix, has_points, by_claim)
    writer.writerow(head)
    for row in matrix.rows:
        writer.writerow(_line(row, matrix, has_points, by_claim))
    for name, remark in matrix.absent:
        cells = {"hand_in": inert(name), "remarks": inert(remark)}
        writer.writerow([cells.get(column, "") for column in head])
    return stream.getvalue()


def inert(text: str) -> str:
    """A text for a cell: one line, and never a formula."""
    shown = paper.line(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown


def as_text(matrix: Matrix, room: int) -> str:
    """The scores of each row, for the terminal."""
    has_points = any(row.points for row in matrix.rows)
    head = ["hand-in", "implementation", *(["points"] if has_points else []), "holds", *score.TIERS]
    rows = [head]
    for row in matrix.rows[:SHOWN]:
        points = [_of_points(row.points)] if has_points else []
        figures = [_of(row.overall), *(_of(row.tiers[tier]) for tier in score.TIERS)]
        rows.append(
            [paper.clipped(paper.line(row.hand_in), 40), paper.clipped(paper.line(row.impl), 30), *points, *figures]
        )
    lines = paper.table(rows, room, left=2)
    if len(matrix.rows) > SHOWN:
        lines.append(f"and {len(matrix.rows) - SHOWN:,} more: --csv FILE has them all")
    for note in matrix.notes:
        lines += paper.wrapped(f"note: {note}", room)
    return "\n".join(lines) + "\n"


def _head(matrix: Matrix, has_points: bool, by_claim: bool) -> list[str]:
    head = ["hand_in", "implementation"]
    if has_points:
        head += ["points", "out_of", "open"]
        head += [f"{tier}.{figure}" for tier in score.TIERS for figure in ("points", "out_of")]
    head += ["holds", "decided"]
    head += [f"{tier}.{figure}" for tier in score.TIERS for figure in ("holds", "decided")]
    if by_claim:
        head += [inert(claim) for claim in matrix.claims]
    else:
        head += [f"{inert(section)}.{figure}" for section in matrix.sections for figure in ("holds", "decided")]
    return [*head, "remarks", "sha256", "report"]


def _line(row: Row, matrix: Matrix, has_points: bool, by_claim: bool) -> Iterator[str | int | float]:
    yield from (inert(row.hand_in), inert(row.impl))
    if has_points:
        yield from _figures(row.points, "points", "out_of", "open")
        for tier in score.TIERS:
            yield from _figures(row.tier_points.get(tier), "points", "out_of")
    yield from _figures(row.overall, "holds", "decided")
    for tier in score.TIERS:
        yield from _figures(row.tiers[tier], "holds", "decided")
    if by_claim:
        yield from (row.claims.get(claim, score.NOT_RUN) for claim in matrix.claims)
    else:
        for section in matrix.sections:
            yield from _figures(row.sections.get(section), "holds", "decided")
    yield from (inert(row.error), row.sha256, inert(row.report))


def _figures(of: object, *names: str) -> Iterator[str | int | float]:
    """The figures of these names; empty cells where there is nothing to have any."""
    for name in names:
        value = getattr(of, name) if of is not None else ""
        yield round(value, 2) if isinstance(value, float) else value


def _of(found: score.Score) -> str:
    return f"{found.holds}/{found.decided}" if found.decided else "-"


def _of_points(found: Points | None) -> str:
    if found is None:
        return "-"
    owed = f" ({points_told(found.open)} open)" if found.open else ""
    return f"{points_told(found.points)}/{points_told(found.out_of)}{owed}"
