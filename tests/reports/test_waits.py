"""The drawing of who waits for whom."""

from __future__ import annotations

from reports.waits import SIZE, drawing

WAITING = {"num_ranks": 4, "edges": [[0, 2], [1, 2], [3, 2]], "blamed": [2]}


def test_each_rank_has_a_place_of_its_own_inside_the_drawing():
    nodes = drawing(WAITING).nodes
    assert [node.rank for node in nodes] == [0, 1, 2, 3]
    assert len({(node.x, node.y) for node in nodes}) == 4
    assert all(15 <= value <= SIZE - 15 for node in nodes for value in (node.x, node.y))


def test_each_wait_has_an_arrow_and_is_told_in_words():
    drawn = drawing(WAITING)
    assert len({arrow.line for arrow in drawn.arrows}) == 3
    assert drawn.words == "0 → 2; 1 → 2; 3 → 2"


def test_who_is_to_blame_is_told_from_who_waits():
    assert [node.kind for node in drawing(WAITING).nodes] == ["held", "held", "blamed", "held"]
    assert drawing({"num_ranks": 3, "edges": [[0, 1]], "blamed": []}).nodes[2].kind == "free"


def test_two_that_wait_for_each_other_have_an_arrow_each():
    there, back = drawing({"num_ranks": 2, "edges": [[0, 1], [1, 0]], "blamed": []}).arrows
    assert there.line != back.line
