"""A schedule that stands beside the one examined: taken where it is valid, and nobody is the worse for it elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.pipeline.judged import Asked, beside
from impls.loading import Implementation, load

CYCLES = """
def clock_cycles(m, n):
    for k in range(m + n - {fewer}):
        yield [(k - stage, stage) for stage in range(max(1 + k - m, 0), min(1 + k, n))]
"""


class Subject:
    """What `beside` needs of one, in this process."""

    def __init__(self, impl: Implementation) -> None:
        self.impl = impl

    def has(self, name: str) -> bool:
        return self.impl.get(name) is not None

    def run(self, program: Callable[..., Any], size: int, calls: list[Any], **how: bool) -> SimpleNamespace:
        return SimpleNamespace(values=[program(SimpleNamespace(impl=self.impl), calls)])


@pytest.mark.parametrize(("fewer", "valid"), [(1, True), (2, False)])
def test_schedule_beside_is_taken_where_it_is_valid(tmp_path: Path, fewer: int, valid: bool) -> None:
    path = tmp_path / "mine.py"
    path.write_text(CYCLES.format(fewer=fewer))
    subject: Any = Subject(load(str(path)))
    assert (beside(subject, Asked("gpipe", 4, 8)) is not None) is valid


def test_there_is_nothing_beside_where_it_is_not_provided(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(CYCLES.format(fewer=1))
    subject: Any = Subject(load(str(path)))
    assert beside(subject, Asked("dualpipe", 4, 8)) is None
