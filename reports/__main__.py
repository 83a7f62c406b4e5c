"""``python -m reports compare|merge|show``: what to do with one report, two, or two hundred."""

from __future__ import annotations

import argparse
import io
import signal
import sys
from collections.abc import Sequence

from reports import compare_command, merge_command, show_command
from reports.files import CannotWrite
from reports.reading import InvalidReport
from reports.trouble import Unusable

UNUSABLE = 2  # exit status of every command for what it cannot read, compare, find or write
COMMANDS = (compare_command, merge_command, show_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m reports", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in COMMANDS:
        command.add(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except (InvalidReport, CannotWrite, Unusable) as error:
        print(f"python -m reports {options.command}: {error}", file=sys.stderr)
        return UNUSABLE


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this like any other tool
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack a letter
    sys.exit(main())
