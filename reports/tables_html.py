"""Pages about several reports: a comparison, a class. One file each that needs nothing else, in both languages."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from reports import compare_text, html, paper, score
from reports.compare import Comparison, Kind
from reports.merge import Matrix, Row


def compared(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    hashes = [{info["name"]: info["sha256"] for info in r["impls"]} for r in (comparison.old, comparison.new)]
    return _page(
        "compare.html.j2",
        "compare_title",
        comparison=comparison,
        status=comparison.exit_status,
        regressed=len(comparison.of(Kind.REGRESSED)),
        sources=[(new, old, hashes[0][old] == hashes[1][new]) for new, old in comparison.names.items()],
        kinds=[
            (kind.value, compare_text.grouped(comparison, kind), len(comparison.of(kind)))
            for kind in compare_text.ABOUT
        ],
    )


def merged(matrix: Matrix, *, by_claim: bool = False) -> str:
    """Return the page of a class; ``by_claim``: a column for each claim, in place of one for each section."""
    return _page(
        "class.html.j2",
        "class_title",
        matrix=matrix,
        sections=[name for name in matrix.sections if any(_is_decided(row, name) for row in matrix.rows)],
        by_claim=by_claim,
        has_points=any(row.points for row in matrix.rows),
        tiers=score.TIERS,
    )


def _is_decided(row: Row, section: str) -> bool:
    found = row.sections.get(section)
    return found is not None and found.decided > 0


def _page(template: str, title: str, **values: Any) -> str:
    style = "".join((html.HERE / "static" / name).read_text(encoding="utf-8") for name in ("report.css", "tables.css"))
    script = (html.HERE / "static" / "tables.js").read_text(encoding="utf-8")
    environment = html.environment()
    environment.filters["line"] = paper.line
    return environment.get_template(template).render(
        title=title,
        style=Markup(style),  # our own files, no outside text
        script=Markup(script),
        policy=html.policy(style, script),
        **values,
    )
