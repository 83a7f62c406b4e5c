"""Pages about several reports: a comparison, a class. One file each that needs nothing else, in both languages."""

from __future__ import annotations

import functools
import tomllib
from typing import Any

from markupsafe import Markup

from conformance.verdict import points_told
from reports import compare_text, html, paper, score
from reports.compare import NOT_SAID, Comparison, Kind
from reports.merge import Matrix, Row

AROUND = "around."  # before the names of what surrounds a run, in the texts


def compared(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    hashes = [{info["name"]: info["sha256"] for info in r["impls"]} for r in (comparison.old, comparison.new)]
    return _page(
        "compare.html.j2",
        "compare_title",
        comparison=comparison,
        around={key.removeprefix(AROUND) for key in words("en") if key.startswith(AROUND)},
        not_said=NOT_SAID,
        listed=lambda names: paper.line(", ".join(names)) or "–",
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
        told=points_told,
        tiers=score.TIERS,
    )


def _is_decided(row: Row, section: str) -> bool:
    found = row.sections.get(section)
    return found is not None and found.decided > 0


@functools.cache
def words(language: str) -> dict[str, str]:
    """Return the texts of these pages, beside those of the report: ``{key: text}``."""
    own = (html.HERE / "locale" / f"tables.{language}.toml").read_text(encoding="utf-8")
    return html.messages()[language] | tomllib.loads(own)


def _text(key: str, **values: object) -> Markup:
    """A text in both languages; ``values`` fill its {names}."""
    return html.both({name: words(name)[key].format(**html.local(values, name)) for name in html.LANGUAGES})


def _page(template: str, title: str, **values: Any) -> str:
    style = html.sheet() + (html.HERE / "static" / "tables.css").read_text(encoding="utf-8")
    script = (html.HERE / "static" / "tables.js").read_text(encoding="utf-8")
    return (
        html.environment()
        .get_template(template)
        .render(
            title=words("en")[title],
            heading=title,
            t=_text,  # the script of these pages has no texts: each is written twice
            inert=paper.line,
            style=Markup(style),  # our own files, no outside text
            script=Markup(script),
            policy=html.policy(style, script),
            **values,
        )
    )
