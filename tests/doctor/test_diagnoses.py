"""Each fault is diagnosed with its kind, its rank and its line; what is healthy is called healthy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doctor.running import Run, doctor, line_of

# Which of them depends on what comes first: gloo's error in the ranks that wait, or the answer of who waits for whom.
LEFT_OR_AWAITED = "left|hang"

# script, kind, ranks to blame, text of the line to look at, entry to read
FAULTS = [
    ("collective_under_if.py", "hang", [0], "# the fault", "collective-in-a-branch"),
    ("uneven_batches.py", "left", [2], "# waited for in vain", "uneven-batches"),
    ("exception_on_one_rank.py", "exception", [1], "# the fault", "exception-on-one-rank"),
    ("mismatched_order.py", "mismatch", [1], "torch.zeros(4)", "order-of-a-set"),
    ("missing_broadcast.py", "divergence", [], "optimizer.step()", "missing-broadcast"),
    ("zero1_by_hand.py", "divergence", [0], "optimizer.step()", "unused-parameter-deadlock"),
    ("bypassed_wrapper.py", "divergence", [1], "optimizer.step()", "wrapper-bypassed"),
    ("sub_group.py", "hang", [2], "dist.barrier()", "subgroup-on-some-ranks"),
    ("sub_group_of_members.py", "hang", [0, 1], "# the fault", "subgroup-on-some-ranks"),
    ("own_excepthook.py", "exception", [1], "# the fault", "exception-on-one-rank"),
    ("killed.py", "killed", [1], "dist.all_reduce", ""),
    ("wrong_size.py", "mismatch", [1], "# the fault", "collective-in-a-branch"),
    ("leaves_abruptly.py", LEFT_OR_AWAITED, [1], "# the fault", "exception-on-one-rank"),
    ("logs_on_rank_zero.py", "mismatch", [0], "# the fault", "collective-in-a-branch"),
    ("exits_with_a_status.py", LEFT_OR_AWAITED, [1], "# the fault", "exception-on-one-rank"),
    ("over_the_time_out.py", "late", [1], "# the fault", ""),
    ("wrapped.py", "hang", [0], "# the fault", "collective-in-a-branch"),
    ("locks_itself.py", "hang", [1], "with lock:", ""),
]

Once = Callable[[str], Run]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """The run of a script on three ranks, one for all tests that ask for it."""
    runs: dict[str, Run] = {}

    def run(script: str) -> Run:
        if script not in runs:
            runs[script] = doctor(tmp_path_factory.mktemp("run"), script)
        return runs[script]

    return run


@pytest.mark.parametrize(("script", "kind", "ranks", "text", "entry"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_fault_is_told_with_rank_line_and_entry(
    script: str, kind: str, ranks: list[int], text: str, entry: str, once: Once
) -> None:
    run = once(script)
    assert run.status == 1, run.told
    assert run.first["kind"] in kind.split("|"), run.told
    assert run.first["ranks"] == ranks, run.told
    assert run.first["where"] == line_of(script, text), run.told
    assert run.first["entries"][:1] == ([entry] if entry else []), run.told
    assert run.first["sentence"].split()[-1] in run.told


def test_a_circle_of_messages_is_told_with_the_lines_of_all_its_ranks(once: Once) -> None:
    run = once("sends_in_a_circle.py")
    lines = [line_of("sends_in_a_circle.py", text) for text in ("# to the first", "# to the next")]
    assert (run.first["kind"], run.first["ranks"], run.first["where"]) == ("hang", [0, 1, 2], ", ".join(lines))
    assert run.first["entries"][0] == "pipeline-send-send"


def test_the_group_that_others_left_out_is_told(once: Once) -> None:
    """Where the others are by then is a matter of moments: the store may give them members of another group."""
    run = once("sub_group_of_members.py")
    assert run.first["details"][0].startswith("rank 0 has made a group of ranks 0, 1 in scripts/")


def test_a_healthy_script_is_healthy(tmp_path: Path) -> None:
    """Once here; LOCKSTEP_ROUNDS=10 for time and again."""
    rounds = int(os.environ.get("LOCKSTEP_ROUNDS", "1"))
    runs = [doctor(tmp_path, "healthy_ddp.py", nproc=2) for _ in range(rounds)]
    assert [(run.status, run.json["findings"], run.json["healthy"]) for run in runs] == [(0, [], True)] * rounds


@pytest.mark.parametrize("script", ["correct.py", "local_steps.py"])
def test_correct_programs_that_look_suspicious_are_healthy(script: str, tmp_path: Path) -> None:
    run = doctor(tmp_path, script)
    assert (run.status, run.json["findings"]) == (0, []), run.told
    assert all("averages now and then" in note for note in run.json["notes"]), run.told


def test_the_step_and_the_parameter_at_which_replicas_part_are_named(once: Once) -> None:
    run = once("bypassed_wrapper.py")
    assert (run.first["parameter"], run.first["step"]) == ("weight", 4)


def test_the_original_error_comes_first_and_the_others_are_called_its_consequence(once: Once) -> None:
    run = once("exception_on_one_rank.py")
    assert [finding["kind"] for finding in run.json["findings"]] == ["exception"]
    assert "ValueError: a broken sample" in run.first["details"]
    assert any("ranks 0, 2" in note for note in run.json["notes"])


def test_operations_stand_side_by_side_with_the_first_difference_marked(once: Once) -> None:
    table = once("collective_under_if.py").first["table"]
    marked = [row for row in table if row.startswith(">")]
    assert table[0].split("  ")[-1].strip() == "ranks 1, 2"
    assert len(marked) == 1
    assert "all_reduce" in marked[0]
    assert "barrier" in marked[0]


@pytest.mark.parametrize("nproc", [None, 3])
def test_a_script_that_spawns_its_ranks_is_started_once_whether_or_not_ranks_are_asked_for(
    nproc: int | None, tmp_path: Path
) -> None:
    run = doctor(tmp_path, "spawned.py", nproc=nproc)
    assert run.status == 0, run.told
    assert run.json["world_size"] == 3
    assert sorted(run.out.splitlines()) == [f"[{rank}] trained on {rank}" for rank in range(3)]


def test_a_hang_among_spawned_ranks_is_told(tmp_path: Path) -> None:
    run = doctor(tmp_path, "spawned.py", "--fault", nproc=None)
    assert (run.status, run.first["kind"], run.first["ranks"]) == (1, "hang", [1]), run.told
    assert run.first["where"] == line_of("spawned.py", "dist.barrier()")


def test_an_exception_of_a_spawned_rank_is_told(tmp_path: Path) -> None:
    run = doctor(tmp_path, "spawned.py", "--raise", nproc=None)
    assert (run.status, run.first["kind"], run.first["ranks"]) == (1, "exception", [1]), run.told
    assert run.first["where"] == line_of("spawned.py", "raise KeyError")


def test_a_helper_thread_does_not_hide_a_hang(tmp_path: Path) -> None:
    run = doctor(tmp_path, "progress_bar.py", nproc=2)
    assert (run.status, run.first["kind"], run.first["ranks"]) == (1, "hang", [0, 1]), run.told


def test_the_status_of_a_rank_that_left_is_the_own_status_of_the_script(once: Once) -> None:
    assert [once(script).json["own_status"] for script in ("leaves_abruptly.py", "exits_with_a_status.py")] == [4, 3]
    assert "exited with status 3 (sys.exit, " in once("exits_with_a_status.py").first["sentence"]


def test_a_rank_that_sits_in_no_operation_is_told_with_its_stack(once: Once) -> None:
    sits, *frames = once("locks_itself.py").first["details"]
    assert sits == "rank 1 sits at, innermost first:"
    assert [frame.split()[-1] for frame in frames] == ["log", "<module>"]


def _figures(run: Run, name: str) -> list[object]:
    return [rank[name] for rank in run.json["ranks"]]


def test_traffic_and_idle_time_are_given_for_each_rank(once: Once) -> None:
    run = once("uneven_batches.py")
    assert _figures(run, "asked_bytes") == [{"all_reduce": 192}, {"all_reduce": 192}, {"all_reduce": 160}]
    assert all(isinstance(idle, float) for idle in _figures(run, "idle_s"))


def test_the_trace_opens_in_perfetto(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    doctor(tmp_path, "own_status.py", nproc=2, options=(f"--trace={trace}",))
    spans = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    assert {(span["pid"], span["name"]) for span in spans} >= {(0, "barrier"), (1, "barrier"), (0, "wait")}
