"""Many reports as one matrix: a row for each hand-in, a column for each section or claim, scores for each tier.

A file that cannot be read, that is no report, or that holds a run for the second time is named in ``Matrix.trouble``
and left out; the others are merged all the same. Nothing is judged here: verdicts and points are those of the reports.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports import score
from reports.reading import FILE_NAME, InvalidReport, load

Report = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """What a rubric gave: points of so many; ``open`` are those that the suite still owes an answer for."""

    points: float
    out_of: float
    open: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One implementation of one report."""

    hand_in: str  # the folder of its report, as short as it can be
    impl: str
    path: str  # of the implementation
    report: str  # path
    sha256: str
    error: str  # why it could not be loaded, or what its course says of it
    overall: score.Score
    tiers: Mapping[str, score.Score]
    sections: Mapping[str, score.Score]
    claims: Mapping[str, str]  # one verdict over all cases
    points: Points | None = None  # None without a rubric
    tier_points: Mapping[str, Points] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All rows. ``sections`` and ``claims`` have the order of the ledger."""

    rows: tuple[Row, ...]
    sections: tuple[str, ...]
    claims: tuple[str, ...]
    trouble: tuple[str, ...]  # sentences about files that are not in it, or not like the others
    notes: tuple[str, ...]  # what a grader may want to know
    absent: tuple[tuple[str, str], ...] = ()  # names of what has no report, each with the reason


def merge(paths: Sequence[Path]) -> Matrix:
    """Merge the reports of these files, and of everything below these folders."""
    trouble: list[str] = []
    runs: dict[str, Path] = {}
    found: list[tuple[str, Path, Report]] = []
    for name, path in _named(_files(paths, trouble)):
        try:
            report = load(path)
        except InvalidReport as error:
            trouble.append(f"left out: {error}")
            continue
        run = report["run"]["id"]
        if run in runs:
            trouble.append(f"left out: {path} is the run of {runs[run]} for the second time (run.id {run})")
            continue
        runs[run] = path
        found.append((name, path, report))
    rows = [row for name, path, report in found for row in _rows(name, path, report)]
    trouble += [f"left out: {path} has no implementation in it" for _, path, r in found if not score.implementations(r)]
    reports = {path: report for _, path, report in found}
    trouble += _other_rubrics(reports)
    shown = {claim for row in rows for claim in row.claims}
    ledger = {claim["id"]: claim["section"] for report in reports.values() for claim in report["claims"]}
    return Matrix(
        rows=tuple(rows),
        sections=tuple(dict.fromkeys(section for claim, section in ledger.items() if claim in shown)),
        claims=tuple(claim for claim in ledger if claim in shown),
        trouble=tuple(trouble),
        notes=(*_other_suites(reports), *_same_sources(rows)),
    )


def remarked(matrix: Matrix, remarks: Mapping[str, Sequence[str]]) -> Matrix:
    """The same with what a course says of its hand-ins, by their names; one without a report is absent, and noted."""
    said = {name: "; ".join(sentences) for name, sentences in remarks.items()}
    rows = [dataclasses.replace(row, error=said.get(row.hand_in) or row.error) for row in matrix.rows]
    named = {row.hand_in for row in rows}
    absent = tuple((name, text) for name, text in said.items() if name not in named)
    notes = [f"{name} has no report: {text}" for name, text in absent]
    return dataclasses.replace(matrix, rows=tuple(rows), absent=absent, notes=(*matrix.notes, *notes))


def _files(paths: Sequence[Path], trouble: list[str]) -> Iterator[tuple[Path, Path]]:
    """Each report with the folder below which its name is told; a file that is reached twice comes once."""
    seen: set[str] = set()
    for path in paths:
        if path.is_dir():
            below = sorted(Path(folder) / FILE_NAME for folder, _, names in os.walk(path) if FILE_NAME in names)
            if not below:
                trouble.append(
                    f"{path} has no {FILE_NAME}, nor has a folder below it: pytest --report=FOLDER writes one"
                )
            reached = [(path, file) for file in below]
        else:
            reached = [(path.parent.parent if path.name == FILE_NAME else path.parent, path)]
        for root, file in reached:
            if (real := os.path.realpath(file)) not in seen:
                seen.add(real)
                yield root, file


def _named(files: Iterable[tuple[Path, Path]]) -> list[tuple[str, Path]]:
    """Each file with a name of its own: its folder below what was given; the whole path where two would be alike."""
    named = []
    for root, file in files:
        at = file.parent if file.name == FILE_NAME else file.with_suffix("")
        inner = os.path.relpath(at, root)
        named.append((inner if inner not in (".", "..") else at.resolve().name, file))
    counts = Counter(name for name, _ in named)
    return [(name if counts[name] == 1 else str(file), file) for name, file in named]


def _rows(name: str, path: Path, report: Report) -> Iterator[Row]:
    cells = score.cells(report)
    scores = {found.impl: found for found in score.scores(report)}
    own = score.suite_only(report)
    counted = [claim for claim in score.counted_claims(report) if claim not in own]
    section = {claim["id"]: claim["section"] for claim in report["claims"]}
    for info in score.implementations(report):
        impl = info["name"]
        claims = {
            claim: score.worst(cell.verdict for cell in cells[claim, impl])
            for claim in counted
            if (claim, impl) in cells
        }
        counts: dict[str, Counter[str]] = {}
        for claim, verdict in claims.items():
            counts.setdefault(section[claim], Counter())[verdict] += 1
        earned = report.get("score", {}).get(impl)
        yield Row(
            hand_in=name,
            impl=impl,
            path=info["path"],
            report=str(path),
            sha256=info["sha256"],
            error=info["error"],
            overall=scores[impl].overall,
            tiers=scores[impl].tiers,
            sections={name: score.Score(counts=dict(count)) for name, count in counts.items()},
            claims=claims,
            points=_points(earned) if earned else None,
            tier_points={tier: _points(of) for tier, of in earned["tiers"].items()} if earned else {},
        )


def _points(fields: Report) -> Points:
    return Points(points=fields["points"], out_of=fields["out_of"], open=fields.get("open", 0.0))


def _other_rubrics(reports: Mapping[Path, Report]) -> Iterator[str]:
    """Points under two rubrics are not the same points."""
    by = {path: (report.get("rubric") or {}).get("sha256", "") for path, report in reports.items()}
    usual = _most_common(by.values())
    for path, sha256 in by.items():
        if sha256 != usual:
            how = "by another rubric" if sha256 and usual else "by a rubric" if sha256 else "by no rubric"
            yield f"{path} was graded {how}, unlike most: its points are not comparable"


def _other_suites(reports: Mapping[Path, Report]) -> Iterator[str]:
    by = {path: _suite(report) for path, report in reports.items()}
    usual = _most_common(by.values())
    others = [str(path) for path, suite in by.items() if suite != usual]
    if others:
        yield f"{len(others)} of {len(by)} reports come from another suite or torch than {usual}: {_listed(others)}"


def _suite(report: Report) -> str:
    suite = report["suite"]
    return f"{suite['name']} {suite['version']} {suite['git']}, torch {report['environment']['torch']}"


def _same_sources(rows: Iterable[Row]) -> Iterator[str]:
    """Two files with the same text; one file that several reports examine (the reference) is no such thing."""
    by: dict[str, list[Row]] = {}
    for row in rows:
        if row.sha256:
            by.setdefault(row.sha256, []).append(row)
    for alike in by.values():
        if len({row.path for row in alike}) > 1:
            yield f"the same sources to the letter: {_listed([row.hand_in for row in alike])}"


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _most_common(values: Iterable[str]) -> str:
    counts = Counter(values)
    return counts.most_common(1)[0][0] if counts else ""
