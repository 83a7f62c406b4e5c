"""Workers that die and runs that are interrupted: every check that was planned still has a verdict."""

from __future__ import annotations

import os
import select
import signal

import pytest

from tests.world.waiting import until

CHECKS = """
import os
import signal
import pytest
from conformance.checks import claim

@claim("collectives.ring.steps")
@pytest.mark.parametrize("number", range(8))
def test_numbered(judge, number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    judge.expect(number, number)
"""

INTERRUPTED = """
import os
import signal
import pytest
from conformance.checks import claim
from conformance.journal import Journal
from conformance.state import STATE
from conformance.verdict import Result, Tier, Verdict

@claim("collectives.ring.steps")
@pytest.mark.parametrize("number", range(4))
def test_numbered(judge, number, request):
    judge.expect(number, number)
    if number == 1:
        forged = Result(claim="", case="", tier=Tier.CORE, impl="", verdict=Verdict.HOLDS)
        neighbour = Journal(request.config.stash[STATE].folder, "neighbour")
        neighbour.result(request.node.nodeid.replace("1", "3"), forged, world_sizes=set(), story=None)
        neighbour.close()
        os.kill(os.getpid(), signal.SIGINT)
"""

WAITS = """
from pathlib import Path
from conformance.checks import claim

@claim("collectives.ring.steps")
def test_quick(judge):
    judge.expect(1, 1)

@claim("collectives.tree.steps")
def test_waits(judge):
    with open("fifo", "w") as gate:
        gate.write("begun")
    with open("fifo") as gate:
        gate.read()
"""

WAITS_WITH_A_WORLD = WAITS.replace("test_waits(judge):", "test_waits(judge, worlds):\n    worlds.world(1)")


def test_killed_worker_loses_only_the_check_it_ran(make_place):
    done = make_place({"test_checks.py": CHECKS}).run("-n", "2", "-k", "numbered")
    verdicts = {r["case"]: r["verdict"] for r in done.record["results"]}
    lost = [case for case, verdict in verdicts.items() if verdict == "lost"]
    assert lost == ["test_numbered[3]"]
    assert len(verdicts) == done.record["collected"] == 8
    assert done.status == 1


def test_interrupt_leaves_a_record_of_all_that_was_planned_without_what_a_neighbour_wrote(make_place):
    done = make_place({"test_checks.py": INTERRUPTED}).run("-k", "numbered")
    verdicts = [r["verdict"] for r in done.record["results"]]
    assert verdicts == ["holds", "lost", "lost", "lost"]
    assert done.status == 2
    assert done.record["run"]["exit_status"] == 2


def test_interrupt_under_xdist_leaves_a_record_too(make_place):
    place = make_place({"test_checks.py": WAITS})
    fifo = place.folder / "fifo"
    os.mkfifo(fifo)
    gate = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    process = place.start("-n", "1", "-k", "test_")
    try:
        has_begun = select.poll()
        has_begun.register(gate, select.POLLIN)
        assert has_begun.poll(100_000), "the check did not begin"
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C in a terminal does
        text, _ = process.communicate(timeout=100)
    finally:
        os.close(gate)
        place.kill(process)
    done = place.finished(process.returncode, text)
    assert {r["case"]: r["verdict"] for r in done.record["results"]} == {"test_quick": "holds", "test_waits": "lost"}
    assert done.status == 2


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "workers"])
def test_nothing_of_the_run_is_left_in_the_temporary_folder(make_place, tmp_path, monkeypatch, options):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = make_place({"test_checks.py": CHECKS.replace("number == 3", "number == 99")}, has_own_server=True).run(
        *options
    )
    assert done.status == 0, done.text
    assert [path for path in tmp_path.iterdir() if path.name.startswith("lockstep")] == []


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["one process", "workers"])
def test_run_that_is_asked_to_end_leaves_a_record_and_nothing_else(make_place, tmp_path, monkeypatch, options):
    done = ended_by(signal.SIGTERM, make_place, tmp_path, monkeypatch, "-k", "test_", *options)
    assert {r["case"]: r["verdict"] for r in done.record["results"]} == {"test_quick": "holds", "test_waits": "lost"}
    assert done.status == done.record["run"]["exit_status"] == 2
    assert "ended by SIGTERM" in done.text


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["one process", "workers"])
def test_run_that_is_killed_leaves_nothing_in_the_temporary_folder(make_place, tmp_path, monkeypatch, options):
    done = ended_by(signal.SIGKILL, make_place, tmp_path, monkeypatch, "-k", "test_waits", *options)
    assert done.status == -signal.SIGKILL


def ended_by(number, make_place, tmp_path, monkeypatch, *options):
    """The run that gets this signal in the middle of a check, once its temporary folder is empty."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    place = make_place({"test_checks.py": WAITS_WITH_A_WORLD}, has_own_server=True)
    fifo = place.folder / "fifo"
    os.mkfifo(fifo)
    gate = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    process = place.start(*options)
    try:
        has_begun = select.poll()
        has_begun.register(gate, select.POLLIN)
        assert has_begun.poll(100_000), "the check did not begin"
        process.send_signal(number)
        process.send_signal(number)  # as timeout(1) does
        process.wait(100)
        until(lambda: not left_in(tmp_path), "the folders are removed")
    finally:
        os.close(gate)
        place.kill(process)
    with process.stdout:
        return place.finished(process.returncode, process.stdout.read())


def left_in(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith("lockstep")]
