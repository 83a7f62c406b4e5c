"""What one pytest process of a run holds on to between its hooks."""

from __future__ import annotations

import dataclasses
import datetime
import time
from pathlib import Path

import pytest

from conformance.describing import Descriptions
from conformance.grading.time_limit import TimeLimit
from conformance.journal import Journal
from conformance.options import Choice
from conformance.patience import Patience
from conformance.verdict import Record


@dataclasses.dataclass(slots=True, kw_only=True)
class State:
    """The choice of the command line, the folder of the run, and what became of it."""

    choice: Choice
    folder: Path  # private to the run; of journals and descriptions where there are workers
    is_controller: bool
    has_workers: bool
    journal: Journal
    descriptions: Descriptions
    seed: int
    began: float = dataclasses.field(default_factory=time.monotonic)
    started: str = dataclasses.field(
        default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    )
    killed: set[tuple[str, str]] = dataclasses.field(default_factory=set)  # (mutant, claim) seen in this process
    patience: dict[tuple[str, tuple[str, ...]], Patience] = dataclasses.field(default_factory=dict)
    limits: dict[str, TimeLimit] = dataclasses.field(default_factory=dict)  # by implementation
    record: Record | None = None
    mutant_lines: tuple[str, ...] = ()
    trouble: str = ""  # why there is no report


STATE = pytest.StashKey[State]()
