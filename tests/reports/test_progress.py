"""Progress with a clock of the test's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reports.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run(durations: list[float], every_s: float, verdicts: dict[int, str] | None = None) -> list[str]:
    """The lines of a run whose tests take so long each."""
    lines: list[str] = []
    clock = Clock()
    progress = Progress(lines.append, every_s, clock)
    progress.pytest_xdist_node_collection_finished(None, [str(n) for n in range(len(durations))])
    for number, duration in enumerate(durations):
        clock.now += duration
        verdict = (verdicts or {}).get(number)
        report = SimpleNamespace(failed=False, **({"lockstep": verdict} if verdict else {}))
        progress.pytest_runtest_logreport(report)  # type: ignore[arg-type]  # all that is looked at
        progress.pytest_runtest_logfinish(str(number))
    return lines


def test_a_line_comes_at_most_once_in_the_interval_and_not_at_the_end() -> None:
    assert len(run([1.0] * 600, every_s=60)) == 9


def test_twenty_minutes_of_checks_are_twenty_lines() -> None:
    assert len(run([0.1] * 12_000, every_s=60)) <= 20


def test_a_line_says_what_is_over_what_is_to_come_and_what_is_in_red() -> None:
    [first, *_] = run([30.0] * 20, every_s=60, verdicts={0: "violated", 1: "holds"})
    assert first == "lockstep: 2 of 20 after 60 s, about 9 min to go; 1 violated"


def test_nothing_is_foreseen_from_too_few() -> None:
    [first, *_] = run([100.0] * 100, every_s=60)
    assert first == "lockstep: 1 of 100 after 2 min; nothing in red"


def test_what_fails_without_a_verdict_is_counted_too() -> None:
    lines: list[str] = []
    clock = Clock()
    progress = Progress(lines.append, 1, clock)
    progress.pytest_collection_finish(SimpleNamespace(items=[1, 2]))  # type: ignore[arg-type]  # only counted
    clock.now = 2.0
    progress.pytest_runtest_logreport(SimpleNamespace(failed=True))  # type: ignore[arg-type]
    progress.pytest_runtest_logfinish("one")
    assert lines == ["lockstep: 1 of 2 after 2 s, about 2 s to go; 1 failed"]


@pytest.mark.parametrize("replaced", [True, False])
def test_a_worker_that_takes_the_place_of_another_starts_no_new_count(replaced: bool) -> None:
    lines: list[str] = []
    clock = Clock()
    progress = Progress(lines.append, 10, clock)
    progress.pytest_xdist_node_collection_finished(None, ["a", "b", "c"])
    clock.now = 5.0
    progress.pytest_runtest_logfinish("a")
    if replaced:
        progress.pytest_xdist_node_collection_finished(None, ["a", "b", "c"])
    clock.now = 10.0
    progress.pytest_runtest_logfinish("b")
    assert lines == ["lockstep: 2 of 3 after 10 s, about 5 s to go; nothing in red"]
