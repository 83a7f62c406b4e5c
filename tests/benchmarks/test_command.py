"""``python -m benchmarks``: bad input is told before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.measure import Ratio


def test_an_unknown_name_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wrold"]) == 2
    assert "Did you mean 'world'?" in capsys.readouterr().err


def test_a_path_that_cannot_be_written_is_told_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["world", f"--json={tmp_path / 'file' / 'figures.json'}"]) == 2
    captured = capsys.readouterr()
    assert "cannot be written" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("value", "target", "holds"),
    [(2.0, "<= 2", True), (2.1, "<= 2", False), (0.7, ">= 0.7", True), (float("nan"), "<= 2", False), (9.0, "", True)],
)
def test_a_ratio_holds_when_it_reaches_its_target(value: float, target: str, holds: bool) -> None:
    assert Ratio(name="n", value=value, unit="u", against="a", target=target).holds is holds
