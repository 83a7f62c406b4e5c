"""``python -m benchmarks [NAME ...] [--json PATH]``: measure, print, and exit with 1 when a target is missed."""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import pkgutil
import sys
from pathlib import Path

import benchmarks
from benchmarks.measure import BENCHMARKS, Ratio


def _discover() -> None:
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name not in {"__main__", "measure"} and not module.name.endswith("programs"):
            importlib.import_module(f"benchmarks.{module.name}")


def _unknown(names: list[str]) -> str | None:
    for name in names:
        if name not in BENCHMARKS:
            near = difflib.get_close_matches(name, BENCHMARKS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            return f"there is no benchmark {name!r}.{hint} There are: {', '.join(sorted(BENCHMARKS))}."
    return None


def _line(ratio: Ratio) -> str:
    mark = "ok  " if ratio.holds else "MISS"
    target = f"target {ratio.target}" if ratio.target else "no target"
    return f"{mark} {ratio.name:<44} {ratio.value:10.3f} {ratio.unit:<14} against {ratio.against} ({target})"


def main(arguments: list[str] | None = None) -> int:
    """Run the named benchmarks, or all; 0 when every target holds, 1 when one is missed, 2 for bad input."""
    _discover()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What Lockstep costs, in ratios.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(sorted(BENCHMARKS))}; default all")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the list of figures there as well")
    options = parser.parse_args(arguments)
    if message := _unknown(options.names):
        print(message, file=sys.stderr)
        return 2
    if options.json:  # a place that cannot be written is said before minutes of measuring
        try:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.touch()
        except OSError as error:
            print(f"--json {options.json} cannot be written: {error.strerror}; choose another path", file=sys.stderr)
            return 2
    ratios: list[Ratio] = []
    for name in options.names or sorted(BENCHMARKS):
        for ratio in BENCHMARKS[name]():
            ratios.append(ratio)
            print(_line(ratio), flush=True)
    if options.json:
        options.json.write_text(json.dumps([ratio.as_json() for ratio in ratios], indent=2) + "\n", encoding="utf-8")
    return 0 if all(ratio.holds for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
