"""The command that runs a case again is one for the folder in which pytest was started."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.collect import _seen_from_here


@pytest.mark.parametrize(
    ("here", "seen"),
    [
        ("/course/lockstep", "conformance/loop/test_x.py::test_y[a.py::b-2]"),
        ("/course", "lockstep/conformance/loop/test_x.py::test_y[a.py::b-2]"),
        ("/course/hand-ins", "../lockstep/conformance/loop/test_x.py::test_y[a.py::b-2]"),
    ],
)
def test_a_case_is_called_as_it_is_seen_from_here(here: str, seen: str) -> None:
    config: Any = SimpleNamespace(rootpath=Path("/course/lockstep"), invocation_params=SimpleNamespace(dir=Path(here)))
    assert _seen_from_here(config, "conformance/loop/test_x.py::test_y[a.py::b-2]") == seen
