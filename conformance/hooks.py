"""Hooks that Lockstep offers to other pytest plug-ins; ``reports`` implements them without importing the checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from conformance.verdict import Record


def pytest_lockstep_record(config: pytest.Config, record: Record, folder: Path) -> None:
    """Receive all that the run found, once, on the controller, at the end of the session; also after Ctrl-C.

    ``folder`` is the report folder (``--report``, by default ``reports/out``); it was writable when the run began and
    may not exist yet. A run that collected no check of a claim has no record and does not call this.
    """
