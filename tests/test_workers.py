"""Which worker runs which tests: what the table in conftest.py names is there."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import SHARED_RUNS

ROOT = Path(__file__).resolve().parents[1]


def test_modules_that_share_a_run_are_there() -> None:
    assert {path for path in SHARED_RUNS if not (ROOT / path).exists()} == set()
