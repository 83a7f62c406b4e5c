"""What a course has graded so far: an append-only file, so that a run that was killed goes on where it was.

A line counts while everything that decides a grade is as it was (hand-in, rubric, suite, seed, limits) and the report
that it stands for lies there unchanged.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

_SUITE = Path(__file__).resolve().parents[2]
_DECIDING = ("conformance", "fixtures", "impls", "lessons", "reports")  # folders whose sources decide a grade


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """One hand-in that has its points."""

    name: str
    fingerprint: str  # of all that decides
    report_sha256: str
    points: float
    out_of: float
    open: float
    took_s: float
    remarks: tuple[str, ...] = ()  # what was left out, killed or stopped


class GradeBook:
    """The file ``graded.jsonl`` of an output folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "graded.jsonl"
        self._entries = {entry.name: entry for entry in self._read()}

    def known(self, name: str, fingerprint: str, report: Path) -> Graded | None:
        """The grade of a hand-in, if it still counts."""
        entry = self._entries.get(name)
        if (
            entry is None
            or not fingerprint
            or entry.fingerprint != fingerprint
            or entry.report_sha256 != sha256_of(report)
        ):
            return None
        return entry

    def note(self, entry: Graded) -> None:
        """Add a grade; it replaces an earlier one of the same name."""
        self._entries[entry.name] = entry
        line = json.dumps(dataclasses.asdict(entry), ensure_ascii=True).encode() + b"\n"
        whole = not self._path.exists() or self._path.read_bytes()[-1:] in (b"", b"\n")
        with self._path.open("ab") as file:
            file.write(line if whole else b"\n" + line)  # a torn line stays one line
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> list[Graded]:
        if not self._path.exists():
            return []
        found = []
        for line in self._path.read_bytes().splitlines():
            try:
                fields: dict[str, Any] = json.loads(line)
                found.append(Graded(**{**fields, "remarks": tuple(fields["remarks"])}))
            except (ValueError, TypeError, KeyError):
                continue  # torn when the run was killed, or of another version
        return found


def fingerprint(parts: Sequence[object]) -> str:
    """One text for all that decides a grade."""
    return hashlib.sha256(json.dumps([*map(str, parts)]).encode()).hexdigest()


def suite_version() -> str:
    """A fingerprint of the suite's own sources, of Python and of torch."""
    total = hashlib.sha256()
    for folder in _DECIDING:
        for path in sorted((_SUITE / folder).rglob("*")):
            if path.suffix in (".py", ".toml", ".json") and "mutants" not in path.parts:
                total.update(f"{path.relative_to(_SUITE)}\0".encode() + path.read_bytes() + b"\0")
    return fingerprint([total.hexdigest(), platform.python_version(), metadata.version("torch")])


def sha256_of(path: Path) -> str:
    """Of a file's content; empty where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
