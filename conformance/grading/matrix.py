"""What a teacher looks at: a line on the terminal, the CSV for the grade book, the matrix of the class.

Both files are made by ``python -m reports merge``, which is not imported: what it needs are reports and remarks.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def merge(reports: Sequence[Path], remarks: Mapping[str, Sequence[str]], out: Path, temporary: Path) -> int:
    """Write a CSV with the sections and a matrix with the claims; the exit status of what could not be done.

    A name that has remarks and no report has its row in the CSV, and a note.
    """
    said = temporary / "remarks.json"
    said.write_text(json.dumps(remarks), encoding="utf-8")
    command = [sys.executable, "-m", "reports", "merge", *map(str, reports), f"--remarks={said}"]
    done = subprocess.run([*command, f"--csv={out / 'grades.csv'}"], cwd=_ROOT, check=False)
    matrix = [*command, f"--out={out / 'class'}", "--columns=claims"]
    again = subprocess.run(matrix, cwd=_ROOT, check=False, capture_output=True)  # it has been said
    if status := done.returncode or again.returncode:
        say(f"the matrix was not made or is not whole: status {status} of {' '.join(command[1:4])} …")
    else:
        say(f"written: {out / 'class' / 'class.html'}")
    return status


def say(line: str) -> None:
    """A line on the terminal, whatever is in a name."""
    print("".join(char if char.isprintable() else "�" for char in line), flush=True)
