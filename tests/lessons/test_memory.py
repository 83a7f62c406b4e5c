"""``python -m lessons memory``: the figures in its tables, the spellings of numbers it takes, what it refuses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from impls.locate import HOME
from lessons import quantities
from lessons.__main__ import main


def rows_of(text: str) -> dict[str, dict[str, list[str]]]:
    """Convention -> stage -> the cells of its row, split at blanks, without the stage and what is sharded."""
    tables: dict[str, dict[str, list[str]]] = {}
    for line in text.splitlines():
        if line.endswith("bytes per parameter"):
            rows = tables.setdefault(line.partition(":")[0], {})
        elif line.startswith("  ") and line.split()[0] in ("ddp", "1", "2", "3"):
            rows[line.split()[0]] = line.replace("+ ", "").split()[2:]
    return tables


def test_the_table_of_70_billion_on_8_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--params", "70B", "--world-size", "8"]) == 0
    tables = rows_of(capsys.readouterr().out)
    assert list(tables) == ["mixed, FP32 master", "mixed, no master", "all FP32"]
    assert all(list(rows) == ["ddp", "1", "2", "3"] for rows in tables.values())
    assert tables["mixed, FP32 master"] == {
        "ddp": ["140.0", "140.0", "840.0", "1,120.0", "16.000", "1.0x", "1,040.0", "over", "never"],
        "1": ["140.0", "140.0", "105.0", "385.0", "5.500", "2.9x", "305.0", "over", "never"],
        "2": ["140.0", "17.5", "105.0", "262.5", "3.750", "4.3x", "182.5", "over", "never"],
        "3": ["17.5", "17.5", "105.0", "140.0", "2.000", "8.0x", "60.0", "over", "N", "=", "14"],
    }
    assert tables["mixed, no master"]["3"][3:] == ["105.0", "1.500", "8.0x", "25.0", "over", "N", "=", "11"]


def test_what_fits_and_what_it_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--params", "7e9", "--world-size", "1", "--device-memory", "112GB"]) == 0
    tables = rows_of(capsys.readouterr().out)
    left = {name: rows["ddp"][-5:] for name, rows in tables.items()}
    assert left == {
        "mixed, FP32 master": ["0", "left", "N", "=", "1"],
        "mixed, no master": ["28.0", "left", "N", "=", "1"],
        "all FP32": ["0", "left", "N", "=", "1"],
    }


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--params", "13e9", "--world-size", "16"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("  stage")]
    assert len(heads) == 3
    for head in heads:
        table = lines[head : head + 5]
        assert len({len(line) for line in table}) == 1
        assert max(map(len, table)) <= 120


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("13e9", 13 * 10**9), ("7B", 7 * 10**9), ("7b", 7 * 10**9), ("1.5 B", 15 * 10**8), ("350M", 350 * 10**6)),
        *(("6_738_415_616", 6738415616), ("6,738,415,616", 6738415616), ("1.3E+9", 13 * 10**8), ("2T", 2 * 10**12)),
        *(("1", 1), ("1e18", 10**18)),
    ],
)
def test_spellings_of_parameters(text: str, value: int) -> None:
    assert quantities.parameters(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("80GB", 80 * 10**9),
            ("80G", 80 * 10**9),
            ("80e9", 80 * 10**9),
            ("80 gb", 80 * 10**9),
            ("80e9B", 80 * 10**9),
        ),
        *(("24GiB", 24 * 2**30), ("1.5 TiB", 3 * 2**39), ("512MB", 512 * 10**6), ("64KiB", 2**16)),
    ],
)
def test_spellings_of_memory(text: str, value: int) -> None:
    assert quantities.num_bytes(text) == value


@pytest.mark.parametrize(
    "text", ["", "B", "-7B", "7X", "7GB", "seven", "nan", "inf", "1e9999", "1.5", "0", "1e19", "0.1"]
)
def test_what_is_no_number_of_parameters(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 13e9, 7B or 350M"):
        quantities.parameters(text)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--params=7X"], "--params: '7X' is not a number of parameters; write it like 13e9, 7B or 350M"),
        (["--params=7B", "--world-size=0"], "--world-size: '0' is not a whole number from 1 to 1e18; write it like 16"),
        (["--params=7B", "--world-size=2.5"], "--world-size: '2.5' is not a whole number from 1 to 1e18"),
        (["--params=7B", "--device-memory=80"], "--device-memory: '80' has no unit; write it like 80GB"),
        (["--params=7B", "--device-memory=80 apples"], "--device-memory: '80 apples' is not an amount of memory; "),
    ],
)
def test_numbers_of_no_use_end_in_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(sentence)
    assert printed.err.count("\n") == 1


def test_the_command_runs_and_its_help_explains_the_conventions() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lessons", "memory", "--help"], capture_output=True, text=True, cwd=HOME.parent
    )
    assert done.returncode == 0
    assert "FP32 copies of the parameters" in done.stdout
    assert "python -m lessons memory --params 70B" in done.stdout
    none = subprocess.run([sys.executable, "-m", "lessons", "memory"], capture_output=True, text=True, cwd=HOME.parent)
    assert none.returncode == 2
    assert "--params" in none.stderr
