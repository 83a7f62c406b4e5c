"""Operations side by side: who did the same shares a column, and the first difference is marked."""

from __future__ import annotations

from fixtures.witness.columns import WIDTH, side_by_side
from fixtures.world.outcome import Operation


def _op(seq: int, shape: tuple[int, ...] = (8,), where: str = "mine/ddp.py:38", kind: str = "all_reduce") -> Operation:
    return Operation(
        seq=seq,
        kind=kind,
        group="default",
        ranks=(0, 1, 2),
        group_seq=seq,
        dtype="float32",
        shape=shape,
        num_bytes=32,
        reduce_op="SUM",
        where=where,
    )


def test_ranks_that_did_the_same_share_a_column() -> None:
    head, *lines = side_by_side([[_op(0)], [_op(0), _op(1)], [_op(0)]])
    assert "ranks 0, 2" in head
    assert "rank 1" in head
    assert len(lines) == 2


def test_the_first_difference_is_marked_and_no_other() -> None:
    lines = side_by_side([[_op(0), _op(1), _op(2)], [_op(0), _op(1, (4,)), _op(2, (4,))]])
    assert [line.startswith(">") for line in lines] == [False, False, True, False]
    assert "float[8]" in lines[2]
    assert "float[4]" in lines[2]


def test_a_rank_that_did_less_has_nothing_there() -> None:
    lines = side_by_side([[_op(0), _op(1)], [_op(0)]])
    assert lines[-1].startswith("> #1")
    assert lines[-1].endswith("nothing")


def test_long_traces_are_shown_around_the_first_difference() -> None:
    same = [_op(seq) for seq in range(50)]
    other = [*same[:20], _op(20, (4,)), *same[21:]]
    lines = side_by_side([same, other], last=6)
    assert len(lines) == 7
    assert next(line for line in lines if line.startswith(">")).split()[1] == "#20"


def test_equal_traces_have_no_mark() -> None:
    assert not any(line.startswith(">") for line in side_by_side([[_op(0)], [_op(0)]]))
    assert side_by_side([[], []]) == ["all ranks: no operation"]


def test_lines_have_a_bounded_width_and_keep_their_line_numbers() -> None:
    where = "a_folder/a_module_with_a_long_name.py:12345"
    lines = side_by_side([[_op(0, where=where)], [_op(0, (4,), where=where)], [_op(0, (2,), where=where)]])
    assert max(map(len, lines)) <= WIDTH
    assert lines[-1].count(".py:12345") == 3
