"""The schedule in docs/schedules.md is 1F1B, and the commands beside it find it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from impls.reference.pipeline.schedules import one_f_one_b
from impls.schedule_forms import read_schedule

DOCS = Path(__file__).resolve().parents[3] / "docs" / "schedules.md"


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (4, 8), (5, 3)])
def test_the_documented_schedule_is_1f1b(sizes: tuple[int, int]) -> None:
    names: dict[str, object] = {}
    (source,) = re.findall(r"(?m)^    # mine\.py\n((?:    .*\n)+)", DOCS.read_text(encoding="utf-8"))
    exec(textwrap.dedent(source), names)
    given = names["one_f_one_b"](*sizes)  # type: ignore[operator]
    assert str(read_schedule(given, "1f1b", *sizes)) == str(one_f_one_b(*sizes))
