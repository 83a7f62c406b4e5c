"""``python -m conformance show NAME-or-PATH``: what Lockstep would take for what. ``… grade FOLDER``: a whole course.
``… mutants``: check the checks."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from conformance import mutants
from conformance.grading import command as grade


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 when it went well, 4 for a name that does not exist."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="what an implementation provides, block by block, before any check")
    show.add_argument("impl", metavar="NAME-or-PATH[:NAME]")
    show.add_argument("--adapters", metavar="FILE", help="a table of adapters as TOML")
    show.add_argument("--device-shim", action="store_true", help="move requests for cuda to the CPU")
    grading = commands.add_parser("grade", help="every hand-in of a folder: points under a rubric, a matrix and a CSV")
    grade.add_arguments(grading)
    mutate = commands.add_parser("mutants", help="every mutant against all claims of its block; writes who broke what")
    mutate.epilog = "other options are handed to pytest, e.g. -n 8"
    chosen, others = parser.parse_known_args(arguments)
    if chosen.command == "mutants":
        return _mutants(others)
    if others:
        (grading if chosen.command == "grade" else show).error(f"unrecognized arguments: {' '.join(others)}")
    if chosen.command == "grade":
        return grade.main(chosen)
    from conformance import showing  # needs torch, and a graded pytest wants to be the first to load what it examines

    return showing.show(chosen.impl, chosen.adapters, chosen.device_shim)


def _mutants(options: Sequence[str]) -> int:
    workers = [] if any(option.startswith(("-n", "--numprocesses")) for option in options) else ["-n", "4"]
    command = [sys.executable, "-m", "pytest", *workers, "--mutants=full", f"--killed={mutants.KILLED}", *options]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
