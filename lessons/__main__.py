"""``python -m lessons NAME [options]``: run one lesson, by its name or by its number in the course."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import importlib
import signal
import sys
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One command. ``number`` is that of the course, 0 for one that the course does not number."""

    name: str
    number: int = 0
    about: str


INTERRUPTED = 128 + signal.SIGINT

LESSONS = (
    Lesson(name="ddp", number=48, about="data parallelism: broadcast, all-reduce, and ranks that stay together"),
    Lesson(name="collectives", number=76, about="rings and trees on a mesh of queues beside gloo, and their bytes"),
    Lesson(name="data-parallel", number=77, about="one process beside data parallelism: losses by step"),
    Lesson(name="advise", about="which strategy for a model on given devices, by memory and by the links, and why"),
    Lesson(name="network", about="from which size on a ring is faster than a tree, by link and number of ranks"),
    Lesson(name="memory", about="what one rank holds under each ZeRO stage, and what fits on a device"),
    Lesson(
        name="zero", number=78, about="ZeRO-1 beside data parallelism: losses by step, and memory by number of ranks"
    ),
    Lesson(name="pipeline", number=79, about="a pipeline schedule as a Gantt chart, and its bubble"),
)


def find(word: str) -> Lesson | None:
    """The lesson of this name or number."""
    return next((lesson for lesson in LESSONS if word in (lesson.name, str(lesson.number or ""))), None)


def _listed() -> str:
    lines = [f"  {lesson.name:<13} {lesson.number or '':>3}  {lesson.about}" for lesson in LESSONS]
    return "\n".join(["usage: python -m lessons NAME [options]; each lesson has a --help of its own", "", *lines])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a lesson: its exit status, 1 when what it shows is not so, 2 for a command line that cannot be used.

    130 after Ctrl-C, as shells have it.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(_listed())
        return 0 if words else 2
    lesson = find(words[0])
    if lesson is None:
        near = difflib.get_close_matches(words[0], [lesson.name for lesson in LESSONS], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        print(f"there is no lesson {words[0]!r}.{hint}\n\n{_listed()}", file=sys.stderr)
        return 2
    try:
        return _run(lesson, words[1:])
    except KeyboardInterrupt:
        print(f"\nInterrupted: lesson {lesson.name} came to no end; its ranks are gone.", file=sys.stderr)
        return INTERRUPTED


def _run(lesson: Lesson, words: Sequence[str]) -> int:
    module = importlib.import_module(f"lessons.{lesson.name.replace('-', '_')}")
    parser = argparse.ArgumentParser(
        prog=f"python -m lessons {lesson.name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    status: int = module.run(parser.parse_args(words))
    return status


if __name__ == "__main__":
    sys.exit(main())
