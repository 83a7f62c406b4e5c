"""The table of crossovers: what it says, and what it refuses."""

from __future__ import annotations

import pytest

from lessons import quantities
from lessons.__main__ import main


def test_every_link_has_its_crossovers_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network"]) == 0
    out = capsys.readouterr().out
    (row,) = [line for line in out.splitlines() if line.startswith("ib-ndr") and "us" in line]
    figures = ["0.56", "1.32", "2.51", "7.96", "24.7", "260"]
    assert row.split() == ["ib-ndr", "14", "us", "50", "always", "always", *figures]
    assert "NVIDIA ConnectX-7 data sheet" in out


def test_a_link_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", "--latency", "20us", "--bandwidth", "3GB/s", "--world-size", "4"]) == 0
    out = capsys.readouterr().out
    assert "yours       20 us      3    always   always    0.048" in out
    assert "ib-ndr" not in out
    assert "ring / tree in microseconds on 4 ranks" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--latency", "5us"], "needs both"),
        (["--latency", "soon", "--bandwidth", "1GB"], "--latency: 'soon' is not a time"),
        (["--latency", "5", "--bandwidth", "1GB"], "--latency: '5' has no unit; write it like 5us"),
        (["--latency", "5us", "--bandwidth", "fast"], "--bandwidth: 'fast' is not a bandwidth"),
        (["--latency", "5us", "--bandwidth", "25"], "--bandwidth: '25' has no unit; write it like 25GB/s"),
        (["--latency", "5us", "--bandwidth", "0GB"], "--bandwidth: '0GB' is not a bandwidth"),
        (["--world-size", "none"], "--world-size: 'none' is not a count"),
    ],
)
def test_an_option_of_no_use_is_told(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", *words]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("25GB", 25e9),
        ("25GB/s", 25e9),
        ("25 GB/s", 25e9),
        ("1.5TB/s", 1.5e12),
        ("2GiB/s", 2 * 2.0**30),
        ("200Gb/s", 25e9),
        ("200Gbps", 25e9),
        ("100Gbit/s", 12.5e9),
        ("3e9B/s", 3e9),
    ],
)
def test_a_bandwidth_in_bits_is_an_eighth_of_one_in_bytes(text: str, bytes_per_s: float) -> None:
    assert quantities.bandwidth(text) == bytes_per_s


@pytest.mark.parametrize(("text", "seconds"), [("5us", 5e-6), ("0.02 ms", 2e-5), ("3e-6s", 3e-6), ("7µs", 7e-6)])
def test_a_latency_has_a_unit(text: str, seconds: float) -> None:
    assert quantities.seconds(text) == pytest.approx(seconds)
