"""The advice as a command: what it prints, what it refuses, and its exit status."""

from __future__ import annotations

import pytest

from lessons.__main__ import main

SEVENTY = ["advise", "--params", "70e9", "--layers", "80", "--device-memory", "80e9", "--devices", "64"]


def test_the_advice_comes_with_reasons_claims_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEVENTY, "--devices-per-node", "8", "--checkpointing"]) == 0
    out = capsys.readouterr().out
    assert "advice: FSDP (ZeRO-3) dp=64" in out
    assert "  - ZeRO-2 on every device would take 160.9 GB of 80.0: 155.3 of states, 5.6 beside them" in out
    assert "follows: choose.fsdp" in out
    assert "runner-up: " in out
    (row,) = [line for line in out.splitlines() if line.endswith("<- advised")]
    assert row.startswith("FSDP (ZeRO-3) dp=64")


def test_slow_links_between_nodes_make_it_a_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEVENTY, "--checkpointing", "--between", "eth10", "--microbatches", "16"]) == 0
    out = capsys.readouterr().out
    assert "schedule zbv" in out
    assert "choose.pipeline" in out


def test_one_device_has_one_layout_and_no_runner_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--params", "1e6", "--layers", "2", "--devices", "1"]) == 0
    out = capsys.readouterr().out
    assert [line.split("  ")[0] for line in out.splitlines() if " yes " in line] == ["one replica"]
    assert "runner-up" not in out


def test_nothing_that_fits_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--params", "70e9", "--layers", "80", "--devices", "1"]) == 1
    assert "Nothing fits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--devices", "12"], "12 devices do not fill nodes of 8; give whole nodes, such as 16 devices"),
        (["--devices", "some"], "--devices: 'some' is not a count"),
        (["--device-memory", "large"], "--device-memory: 'large' is not an amount of memory"),
        (["--all-to-all", "much"], "--all-to-all: 'much' is not a share; write it like 0.5 or 50%"),
        (["--all-to-all", "-1"], "all_to_all_share is -1.0"),
    ],
)
def test_an_option_of_no_use_is_told(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEVENTY, *words]) == 2
    assert told in capsys.readouterr().err
