"""A pipeline as it was seen: charts and idle shares are of the times that were measured, not of equal ones."""

from __future__ import annotations

import dataclasses

import pytest

from conformance.pipeline.performed import Performed
from impls.reference.pipeline.actions import Action
from lessons.pipeline_work import Moment

MS = 10**6

# Two ranks, one microbatch: 10 ms for each of F, I and W, but 30 ms for rank 1's W; rank 0 waits 5 ms too long.
RANK_0: list[Moment] = [("F", 0, 0, 0, 10 * MS), ("I", 0, 0, 35 * MS, 45 * MS), ("W", 0, 0, 45 * MS, 55 * MS)]
RANK_1: list[Moment] = [("F", 1, 0, 10 * MS, 20 * MS), ("I", 1, 0, 20 * MS, 30 * MS), ("W", 1, 0, 32 * MS, 62 * MS)]


def performed(*lists: str, schedule: str = "zb_h1") -> Performed:
    return Performed(
        schedule=schedule,
        count=1,
        unit_s=0.01,
        name=schedule,
        lists=[[Action.parse(word, rank) for word in row.split()] for rank, row in enumerate(lists)],
        moments=[RANK_0, RANK_1],
    )


def test_cells_have_the_measured_times_in_ms() -> None:
    cells = performed("F0 B0", "F0 I0 W0").cells
    assert [(cell.label, cell.begin, cell.end) for cell in cells] == [
        ("F0.0", 0, 10),
        ("B0.0", 35, 55),
        ("F1.0", 10, 20),
        ("I1.0", 20, 30),
        ("W1.0", 32, 62),
    ]


def test_order_that_nobody_could_ask_for_is_not_called_by_a_schedule_s_name() -> None:
    asked = performed("F0 B0", "F0 I0 W0")
    assert asked.told.startswith("zb_h1 on 2 ranks")
    assert dataclasses.replace(asked, name="").told.startswith("its one order on 2 ranks")


def test_the_chart_of_measured_times_stands_above_that_of_the_model() -> None:
    measured, model = performed("F0 B0", "F0 I0 W0").charts["gantt"]
    assert measured["cells"][1] == [0, "B", 0, 0, 35, 55]
    assert measured["label"] == "executed as measured in ms"
    assert max(cell[5] for cell in model["cells"]) == 5  # F F I I W


def test_the_idle_share_is_that_of_the_measured_times() -> None:
    done = performed("F0 B0", "F0 I0 W0")
    assert done.idle_share == pytest.approx(1 - 80 / 124)
    assert "measured idle share 35.5%, model" in done.told


def test_oversleep_is_that_of_the_usual_work() -> None:
    done = performed("F0 B0", "F0 I0 W0")
    assert done.oversleep == pytest.approx(0)
    late = [[(*moment[:4], moment[4] + 5 * MS) for moment in rank] for rank in done.moments]
    busy = Performed(schedule="zb_h1", count=1, unit_s=0.01, name="", lists=done.lists, moments=late)
    assert busy.oversleep == pytest.approx(0.5)
