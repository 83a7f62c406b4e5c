"""The wait-for graph by itself, on boards filled by hand: who can never go on, and in which words."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from fixtures.witness.rollcall import Scene, place_in, roll_call, stalled_call
from fixtures.witness.waits import find_cycle
from tests.witness.boards import Boards


def deadlocked(boards: Boards, *, alive: Collection[int] = ()) -> set[int]:
    return set(boards.graph().deadlocked(set(alive)))


def sentence(boards: Boards, *, alive: Collection[int] = ()) -> str:
    graph = boards.graph()
    return roll_call(Scene(graph=graph, blocked=graph.deadlocked(set(alive)))).sentence


def test_a_collective_waits_for_the_rank_that_has_not_come(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 3)
    boards.issue(0, "all_reduce", waits=True)
    boards.issue(1, "all_reduce", waits=True)

    assert deadlocked(boards, alive={2}) == set()
    boards.ranks[2].finished(1)
    assert deadlocked(boards) == {0, 1}
    assert sentence(boards) == (
        "ranks 0, 1 wait in all_reduce #0 (8 floats); rank 2 finished its program without entering it."
    )


def test_a_collective_that_all_have_entered_can_complete(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 2)
    boards.issue(0, "all_reduce", waits=True)
    boards.issue(1, "all_reduce", waits=True)

    assert deadlocked(boards) == set()


def test_a_rank_is_free_through_a_chain_that_ends_at_one_that_computes(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 4)
    for rank in range(3):
        boards.issue(rank, "recv", peer=rank + 1, waits=True)

    assert deadlocked(boards, alive={3}) == set()
    boards.ranks[3].finished(1)
    assert deadlocked(boards) == {0, 1, 2}


@pytest.mark.parametrize(
    ("theirs", "cannot"),
    [
        ({"kind": "broadcast", "root": 0}, True),
        ({"kind": "all_reduce", "num_bytes": 4, "shape": (1,)}, True),
        ({"kind": "all_reduce", "reduce_op": "MAX"}, False),
        ({"kind": "all_reduce", "dtype": "int32"}, False),
    ],
)
def test_another_kind_or_size_cannot_meet_and_another_sum_of_the_same_size_can(
    tmp_path: Path, theirs: dict[str, object], cannot: bool
) -> None:
    boards = Boards(tmp_path, 2)
    boards.issue(0, "all_reduce", waits=True)
    boards.issue(1, **theirs, waits=True)  # type: ignore[arg-type]

    assert deadlocked(boards) == ({0, 1} if cannot else set())


def test_an_operation_that_met_another_kind_which_has_ended_never_completes(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 2)
    boards.issue(0, "broadcast", root=0, ends=True)
    boards.issue(1, "all_reduce", waits=True, where="mine.py:4")

    assert deadlocked(boards, alive={0}) == {1}
    assert "rank 0 called broadcast from root 0 (8 floats) there instead" in sentence(boards, alive={0})


def test_an_earlier_operation_of_the_group_that_cannot_meet_holds_up_the_later(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 2)
    boards.issue(0, "all_reduce")
    boards.issue(1, "reduce", root=0)
    for rank in (0, 1):
        boards.issue(rank, "barrier", waits=True)

    assert deadlocked(boards) == {0, 1}
    assert sentence(boards).startswith("rank 0 waits in all_reduce #0 (8 floats); rank 1 called reduce to root 0")


def test_a_broadcast_can_be_over_for_some_before_all_have_come(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 4)
    boards.issue(0, "broadcast", root=0, waits=True)
    boards.issue(3, "recv", peer=0, waits=True)

    assert deadlocked(boards, alive={1, 2}) == set()


def test_a_broadcast_waits_for_its_root(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 3)
    boards.issue(1, "broadcast", root=0, waits=True)
    boards.ranks[0].finished(1)

    assert deadlocked(boards, alive={2}) == {1}


@pytest.mark.parametrize(("tag", "locked"), [(1, set()), (2, {0, 1})])
def test_messages_are_matched_by_peer_direction_and_tag(tmp_path: Path, tag: int, locked: set[int]) -> None:
    boards = Boards(tmp_path, 2)
    boards.issue(0, "send", peer=1, tag=1, waits=True)
    boards.issue(1, "recv", peer=0, tag=tag, waits=True)

    assert deadlocked(boards) == locked


def test_a_receive_from_any_rank_waits_for_all_who_could_send(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 3)
    boards.issue(0, "recv", peer=-1, waits=True)
    boards.ranks[1].finished(1)

    assert deadlocked(boards, alive={2}) == set()
    boards.ranks[2].finished(1)
    assert deadlocked(boards) == {0}


def test_an_unawaited_message_frees_nobody(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 2)
    for rank in (0, 1):
        boards.issue(rank, "send", peer=1 - rank, tag=5)
        boards.issue(rank, "recv", peer=1 - rank, tag=5)
        boards.issue(rank, "send", peer=1 - rank, waits=True)

    assert deadlocked(boards) == {0, 1}


def test_a_rank_that_nobody_sees_waiting_hangs_from_its_outstanding_collectives(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 3)
    for rank in range(3):
        boards.issue(rank, "all_reduce")  # complete, but nobody has looked
    for rank in (0, 1):
        boards.issue(rank, "all_reduce")

    assert deadlocked(boards, alive={2}) == set()
    boards.ranks[2].mark("backward-end")
    boards.ranks[2].finished(1)
    assert deadlocked(boards) == {0, 1}


def test_crossed_groups_are_told_as_such(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 2)
    boards.issue(0, "all_reduce", group="1", waits=True)
    boards.issue(1, "all_reduce", group="2", waits=True)

    assert deadlocked(boards) == {0, 1}
    assert "They wait in a circle: 0 -> 1 -> 0. Ranks enter these groups in different orders" in sentence(boards)


def test_the_cause_is_told_first_and_who_waits_behind_it_last(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 4)
    for rank in (0, 1):
        boards.issue(rank, "send", peer=1 - rank, waits=True)
    for rank in (2, 3):
        boards.issue(rank, "all_reduce", waits=True)

    assert sentence(boards) == (
        "rank 0 waits in send #0 to rank 1 (8 floats); rank 1 waits in send #0 to rank 0 (8 floats). "
        "They wait in a circle: 0 -> 1 -> 0. All of them send and none receives. "
        "Behind them, ranks 2, 3 wait in all_reduce #0 (8 floats)."
    )


def test_a_receive_from_a_rank_that_is_gone_is_the_cause_of_what_waits_for_the_receiver(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 4)
    for rank in (0, 1):
        boards.issue(rank, "barrier", waits=True)
    boards.issue(2, "recv", peer=3, waits=True)
    boards.issue(3, "barrier")
    boards.ranks[3].finished(1)

    graph = boards.graph()
    verdict = roll_call(Scene(graph=graph, blocked=graph.deadlocked(set())))
    assert verdict.odd_ones == (3,)
    assert verdict.sentence == (
        "rank 2 waits in recv #0 from rank 3 (8 floats); rank 3 finished its program without sending it. "
        "Behind them, ranks 0, 1 wait in barrier #0 (8 floats)."
    )


def test_ranks_that_parted_before_are_told_where(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 3)
    for rank in range(3):
        boards.issue(rank, "all_reduce", reduce_op="MAX" if rank == 1 else "SUM", where=f"a.py:{rank}", ends=True)
    boards.issue(0, "barrier", waits=True)
    boards.issue(2, "barrier", waits=True)
    boards.ranks[1].finished(1)

    graph = boards.graph()
    verdict = roll_call(Scene(graph=graph, blocked=graph.deadlocked(set())))
    assert "They had parted before, at #0:" in verdict.sentence
    assert "rank 1 called all_reduce (8 floats, MAX, a.py:1)" in verdict.sentence
    assert verdict.odd_ones == (1,)


def test_a_stalled_world_is_told_with_the_line_where_the_rank_is_alive(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 2)
    boards.issue(0, "recv", peer=1, waits=True, where="mine.py:12")
    dump = (
        "Thread 0x00007f (most recent call first):\n"
        '  File "/usr/lib/python3.11/queue.py", line 171 in get\n'
        '  File "/home/me/mine/slow.py", line 30 in load\n'
    )

    verdict = stalled_call(Scene(graph=boards.graph(), blocked=frozenset(), activities={1: "sleeps"}), {1: dump})

    assert not verdict.deadlock
    assert verdict.sentence == (
        "stalled: rank 0 waits for rank 1 in recv #0 from rank 1 (8 floats, mine.py:12); "
        "rank 1, alive at mine/slow.py:30 in load, sleeps."
    )
    assert verdict.calls[1] == "no operation: mine/slow.py:30 in load"


def test_a_rank_that_polls_is_told_with_its_line_and_with_what_it_polls(tmp_path: Path) -> None:
    boards = Boards(tmp_path, 2)
    boards.issue(0, "recv", peer=1, where="mine.py:12")
    boards.issue(1, "all_reduce", waits=True)
    dump = 'Thread 0x00007f (most recent call first):\n  File "/home/me/mine/poll.py", line 13 in poll\n'

    verdict = stalled_call(Scene(graph=boards.graph(), blocked=frozenset(), activities={0: "computes"}), {0: dump})

    assert verdict.sentence.startswith(
        "stalled: rank 1 waits for rank 0 in all_reduce #0 (8 floats); rank 0 has begun recv #0 from rank 1 "
        "(8 floats, mine.py:12), held up by rank 1; at mine/poll.py:13 in poll it computes. A loop around "
    )


def test_a_dump_without_a_frame_of_the_implementation_names_no_place() -> None:
    assert place_in('  File "/venv/lib/python3.11/site-packages/torch/x.py", line 1 in f\n') == ""
    assert place_in("") == ""


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ({0: [1], 1: [0]}, (0, 1)),
        ({0: [1], 1: [2], 2: []}, ()),
        ({3: [1], 1: [2], 2: [1, 3]}, (1, 2)),
        ({0: [1], 2: [0], 1: [2]}, (0, 1, 2)),
        ({0: [0]}, (0,)),
        ({}, ()),
    ],
)
def test_the_shortest_circle_starts_at_its_lowest_rank(edges: dict[int, list[int]], cycle: tuple[int, ...]) -> None:
    assert find_cycle(edges) == cycle
