"""The table of crossovers: what it says, and what it refuses."""

from __future__ import annotations

import pytest

from lessons.__main__ import main


def test_every_link_has_its_crossovers_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network"]) == 0
    out = capsys.readouterr().out
    (row,) = [line for line in out.splitlines() if line.startswith("ib-ndr") and "us" in line]
    figures = ["0.56", "1.32", "2.51", "7.96", "24.7", "260"]
    assert row.split() == ["ib-ndr", "14", "us", "50", "always", "always", *figures]
    assert "NVIDIA ConnectX-7 data sheet" in out


def test_a_link_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", "--latency", "20us", "--bandwidth", "3GB", "--world-size", "4"]) == 0
    out = capsys.readouterr().out
    assert "yours       20 us      3    always   always    0.048" in out
    assert "ib-ndr" not in out
    assert "ring / tree in microseconds on 4 ranks" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--latency", "5us"], "needs both"),
        (["--latency", "soon", "--bandwidth", "1GB"], "'soon' is not a time"),
        (["--latency", "5us", "--bandwidth", "fast"], "not an amount of memory"),
        (["--world-size", "none"], "'none' is not a count"),
    ],
)
def test_an_option_of_no_use_is_told(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", *words]) == 2
    assert told in capsys.readouterr().err
