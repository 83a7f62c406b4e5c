"""What needs no processes: how a script is started, replicas by their fingerprints, tables, original errors."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.doctor import divergence, entries, failures
from fixtures.doctor.findings import Kind
from fixtures.doctor.launch import makes_its_own_ranks
from fixtures.doctor.sidebyside import table
from fixtures.witness.board_layout import Call, Key
from fixtures.witness.callers import line_of, on_behalf, told

SPAWNING = "import torch.multiprocessing as mp\nmp.spawn(train, nprocs=4)\n"


@pytest.mark.parametrize(
    ("source", "own"),
    [
        (SPAWNING, True),
        ("import os\nos.environ['RANK'] = '0'\n" + SPAWNING, True),
        ("import os\nrank = os.environ['RANK']\n" + SPAWNING, False),
        ("import os\nrank = int(os.environ.get('LOCAL_RANK', -1))\n" + SPAWNING, False),
        ("import os\nif 'WORLD_SIZE' in os.environ:\n    train()\nelse:\n    mp.spawn(train)\n", False),
        ("from multiprocessing import Process\nProcess(target=train).start()\n", True),
        ("import torch.distributed as dist\ndist.init_process_group('gloo')\n", False),
        ("this is no Python", False),
    ],
)
def test_a_script_that_spawns_and_reads_no_rank_makes_its_own(source: str, own: bool) -> None:
    assert makes_its_own_ranks(source) is own


def _reports(
    looks: dict[int, list[tuple[int, list[int], list[float]]]], ranks: list[int] | None = None, confirmed: int = 2
) -> Any:
    watched = {"names": ["a", "b"], "evidence": "DDP", "where": "train.py:9", "steps": 9, "confirmed": confirmed}
    members = sorted(looks) if ranks is None else ranks
    return {rank: {"parameters": [{**watched, "ranks": members, "looks": look}]} for rank, look in looks.items()}


EQUAL = [(0, [1, 2], [1.0, 2.0]), (1, [3, 4], [1.0, 2.0])]


def test_equal_replicas_are_equal() -> None:
    assert divergence.compare(_reports({0: EQUAL, 1: EQUAL})) == ([], [])


def test_the_rank_that_is_not_with_the_majority_is_named_with_step_and_parameter() -> None:
    odd = [EQUAL[0], (1, [3, 5], [1.0, 2.5])]
    (found,), notes = divergence.compare(_reports({0: EQUAL, 1: odd, 2: EQUAL}))
    assert (found.kind, found.ranks, found.step, found.parameter) == (Kind.DIVERGENCE, (1,), 1, "b")
    assert notes == []


def test_steps_that_some_rank_left_out_are_not_compared() -> None:
    looks = {0: [*EQUAL, (2, [7, 7], [9.0, 9.0])], 1: [EQUAL[0], (3, [8, 8], [1.0, 1.0])]}
    assert divergence.compare(_reports(looks)) == ([], [])


def _of_unequal_length(at_the_end: list[int]) -> Any:
    """Rank 0 takes one step and rank 1 two; both look once more at the end."""
    reports = _reports({0: [EQUAL[0], (1, [5, 6], [1.0, 2.0])], 1: [*EQUAL, (2, at_the_end, [1.0, 2.5])]})
    for rank, report in reports.items():
        report["parameters"][0]["steps"] = rank + 1
    return reports


def test_the_look_at_the_end_is_compared_with_that_of_the_others_however_many_steps_they_took() -> None:
    assert divergence.compare(_of_unequal_length([5, 6])) == ([], [])
    (found,), _ = divergence.compare(_of_unequal_length([5, 7]))
    assert found.parameter == "b"
    assert "Steps taken: rank 0: 1; rank 1: 2." in " ".join(found.details)
    assert found.entries[0] == "skipped-batch"


def test_ranks_that_were_ended_amid_their_steps_have_no_end_in_common() -> None:
    assert divergence.compare(_of_unequal_length([5, 7]), is_whole=False) == ([], [])


def test_replicas_that_are_reduced_by_hand_are_not_sent_to_entries_about_the_wrapper() -> None:
    odd = [EQUAL[0], (1, [3, 5], [1.0, 2.5])]
    reports = _reports({0: EQUAL, 1: odd, 2: EQUAL})
    (by_hand,), _ = divergence.compare(reports)
    for report in reports.values():
        report["parameters"][0]["evidence"] = "DistributedDataParallel"
    (wrapped,), _ = divergence.compare(reports)
    assert "wrapper-bypassed" in wrapped.entries
    assert "wrapper-bypassed" not in by_hand.entries
    assert "order-of-a-set" in by_hand.entries


def test_what_was_compared_is_counted() -> None:
    assert divergence.num_compared(_reports({0: EQUAL, 1: EQUAL})) == 1
    assert divergence.num_compared(_reports({0: EQUAL, 1: EQUAL}, confirmed=1)) == 0
    assert divergence.num_compared(_reports({0: EQUAL})) == 0


def test_replicas_that_meet_again_are_a_note() -> None:
    apart = [EQUAL[0], (1, [3, 9], [1.0, 9.0])]
    together = (2, [6, 6], [1.0, 1.0])
    findings, notes = divergence.compare(_reports({0: [*EQUAL, together], 1: [*apart, together]}))
    assert findings == []
    assert "equal again at the end" in notes[0]


def test_replicas_that_were_equal_once_more_are_a_note_whatever_the_last_look_saw() -> None:
    looks = {
        rank: [EQUAL[0], (1, [rank, 4], [1.0 + rank, 2.0]), (2, [5, 6], [1.0, 2.0]), (3, [rank, 6], [1.0 + rank, 2.0])]
        for rank in (0, 1)
    }
    findings, notes = divergence.compare(_reports(looks))
    assert findings == []
    assert "equal again before step 2" in notes[0]


def test_a_difference_of_rounding_is_a_note() -> None:
    rounded = [EQUAL[0], (1, [3, 5], [1.0, 2.0 + 1e-7])]
    findings, notes = divergence.compare(_reports({0: EQUAL, 1: rounded}))
    assert findings == []
    assert "last bits" in notes[0]


def test_a_parameter_that_is_not_a_number_on_one_rank_is_no_rounding() -> None:
    broken = [EQUAL[0], (1, [3, 5], [1.0, float("nan")])]
    (found,), _ = divergence.compare(_reports({0: EQUAL, 1: broken}))
    assert found.parameter == "b"


def test_gradients_that_were_only_once_seen_to_be_reduced_are_no_sign_of_replicas() -> None:
    odd = [EQUAL[0], (1, [3, 5], [1.0, 2.5])]
    assert divergence.compare(_reports({0: EQUAL, 1: odd}, confirmed=1)) == ([], [])


def test_replicas_are_compared_within_their_group() -> None:
    other = [(0, [8, 8], [5.0, 5.0])]
    looks = _reports({0: EQUAL, 1: EQUAL}, [0, 1]) | _reports({2: other, 3: other}, [2, 3])
    assert divergence.compare(looks) == ([], [])


def _call(index: int, kind: str = "all_reduce") -> Call:
    return Call(
        key=Key("collective", "default"),
        index=index,
        kind=kind,
        ranks=(0, 1, 2),
        dtype="float32",
        shape=(8,),
        num_bytes=32,
        where="mine/train.py:38",
    )


def test_ranks_that_did_the_same_share_a_column_and_the_first_difference_is_marked() -> None:
    usual = [_call(index) for index in range(6)]
    head, *rows = table({0: usual, 1: usual, 2: [*usual[:4], _call(4, "broadcast")]}, "default")
    assert head.split() == ["ranks", "0,", "1", "rank", "2"]
    assert [row[:4] for row in rows] == ["  #1", "  #2", "  #3", "> #4", "  #5"]
    assert rows[3].split().count("broadcast") == 1
    assert rows[4].rstrip().endswith("nothing")


def test_operations_that_a_function_issues_for_several_callers_are_told_by_the_caller() -> None:
    by_two = on_behalf([("comm.py:8", "train.py:3"), ("comm.py:8", "train.py:9"), ("train.py:5", "train.py:20")])
    assert by_two == {"comm.py:8"}
    assert told("mine/comm.py:8", "train.py:3", frozenset({"mine/comm.py:8"})) == "train.py:3 via comm.py:8"
    assert told("train.py:5", "train.py:20", by_two) == "train.py:5"
    assert line_of("train.py:3 via comm.py:8") == "train.py:3"


def test_ranks_that_all_did_the_same_have_no_table() -> None:
    assert table({0: [_call(0)], 1: [_call(0)]}, "default") == ()


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("[pair.cc:553] Connection closed by peer [127.0.0.1]:51", True),
        ("Read error [127.0.0.1]:48812: Connection reset by peer.", True),
        ("Timed out waiting 1800000ms for recv operation to complete", True),
        ("wait timeout after 300000ms, keys: /default_pg/0//1", True),
        ("mat1 and mat2 shapes cannot be multiplied", False),
        ("[enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 2732 vs 44", False),
    ],
)
def test_an_error_about_a_lost_peer_is_told_from_one_of_its_own(text: str, lost: bool) -> None:
    assert failures.has_lost_a_peer(_raised(text)) is lost


def _raised(text: str, file: str = "/site/torch/distributed/distributed_c10d.py", first: Any = None) -> dict[str, Any]:
    return {"type": "RuntimeError", "text": text, "innermost_file": file, "first": first}


LOST, OWN = "Connection closed by peer [127.0.0.1]:51", "a broken sample"


def test_a_download_that_times_out_is_an_error_of_its_own() -> None:
    assert not failures.has_lost_a_peer(_raised("Read timed out.", "/site/urllib3/connectionpool.py"))
    assert not failures.has_lost_a_peer(_raised("DataLoader timed out", "/site/torch/utils/data/dataloader.py"))


def test_memory_that_torch_cannot_allocate_is_no_mismatch() -> None:
    assert entries.for_exception("RuntimeError", "[enforce fail at alloc_cpu.cpp:127] err == 0")[0] != "shapes-differ"
    assert entries.for_exception("RuntimeError", "[enforce fail at /a/gloo/pair.cc:456] op.x")[0] == "shapes-differ"


def test_who_wraps_a_lost_connection_in_an_error_of_its_own_has_lost_a_peer() -> None:
    wrapped = _raised("training failed", "/home/me/train.py", _raised(LOST))
    assert failures.has_lost_a_peer(wrapped)
    assert failures.in_question(wrapped)["text"] == LOST


def test_who_loses_a_connection_while_it_cleans_up_after_an_error_has_made_that_error() -> None:
    cleaning = _raised(LOST, first=_raised(OWN, "/home/me/data.py"))
    assert not failures.has_lost_a_peer(cleaning)
    assert failures.in_question(cleaning)["text"] == OWN


def test_of_two_errors_of_its_own_the_last_counts() -> None:
    second = _raised("no such file", "/home/me/data.py", _raised("no such key", "/home/me/data.py"))
    assert failures.in_question(second)["text"] == "no such file"


def test_every_entry_that_a_finding_may_point_to_exists() -> None:
    assert entries.known(["no-such-entry", "missing-broadcast", "missing-broadcast"]) == ("missing-broadcast",)
    assert entries.titles()["missing-broadcast"] == "Ranks drift apart from the first step"
