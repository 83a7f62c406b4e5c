"""Charts of what pipeline ranks do over time: taken out of results, drawn, written as traces."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from conformance.verdict import Record, Verdict
from reports import build, gantt, html, traces
from tests.reports import sample
from tests.reports.test_html import whole

# Two ranks, two microbatches: 1F1B with F = 1 and B = 2, and a pair on rank 1.
CELLS = [
    *([0, "F", 0, 0, 0, 1], [0, "F", 0, 1, 1, 2], [0, "B", 0, 0, 4, 6], [0, "B", 0, 1, 7, 9]),
    *([1, "F", 1, 0, 1, 2], [1, "B", 1, 0, 2, 4], [1, "F", 1, 1, 4, 5], [1, "I", 1, 1, 5, 6], [1, "W", 1, 1, 6, 7]),
]
DATA = {"gantt": [{"label": "simulated", "cells": CELLS}]}
NOT_CELLS: list[Any] = [
    *([], [0, "F", 0, 0, 0], [0, "X", 0, 0, 0, 1], [0, "F", 0, -1, 0, 1], [0, "F", 0, 0, 2, 1], "cell", None),
    *([0, "F", 0, 0, 0, float("inf")], ["0", "F", 0, 0, 0, 1]),
]


def record(data: dict[str, Any], verdict: Verdict = Verdict.HOLDS) -> Record:
    result = sample.result("pipeline.gpipe.bubble", "mine", verdict, case="drawn", data=data)
    return sample.record(extra=(result,))


def test_every_cell_is_a_box_in_the_row_of_its_rank() -> None:
    [picture] = gantt.pictures(DATA)
    assert [lane.label for lane in picture.lanes] == ["rank 0", "rank 1"]
    assert len(picture.boxes) == len(CELLS)
    assert {box.y for box in picture.boxes} == {lane.at for lane in picture.lanes}
    assert picture.kinds == ("F", "B", "I", "W")
    assert dict(picture.orders) == {0: "F0.0 F0.1 B0.0 B0.1", 1: "F1.0 B1.0 F1.1 I1.1 W1.1"}


def test_positions_are_proportional_to_time() -> None:
    [picture] = gantt.pictures(DATA)
    unit = (gantt.WIDTH - gantt.LEFT - gantt.RIGHT) / 9
    assert [box.x for box in picture.boxes if box.told.startswith("rank 0")] == [
        pytest.approx(gantt.LEFT + begin * unit, abs=0.01) for begin in (0, 1, 4, 7)
    ]
    assert all(box.x >= gantt.LEFT and box.x + box.width <= gantt.WIDTH - gantt.RIGHT + 0.1 for box in picture.boxes)


def test_the_idle_share_is_that_of_the_drawn_chart() -> None:
    [picture] = gantt.pictures(DATA)
    assert picture.idle == f"{1 - 12 / 18:.1%}"


def test_cells_of_the_same_times_share_a_row_and_count_once_as_work() -> None:
    pair = [[0, "F", 0, 1, 0, 3], [0, "B", 1, 0, 0, 3]]
    [picture] = gantt.pictures({"gantt": [{"label": "", "cells": pair}]})
    assert [box.height for box in picture.boxes] == [gantt.LANE / 2] * 2
    assert picture.boxes[0].y < picture.boxes[1].y
    assert picture.idle == "0.0%"


def test_what_is_no_cell_is_left_out() -> None:
    [picture] = gantt.pictures({"gantt": [{"label": "x", "cells": [*NOT_CELLS, *CELLS]}]})
    assert len(picture.boxes) == len(CELLS)
    assert gantt.pictures({"gantt": [{"label": "x", "cells": NOT_CELLS}]}) == []
    assert gantt.pictures({}) == []


def test_a_large_chart_is_cut_and_says_so() -> None:
    many = [[0, "F", 0, at, at, at + 1] for at in range(gantt.MOST_CELLS + 5)]
    [picture] = gantt.pictures({"gantt": [{"label": "", "cells": many}]})
    assert len(picture.boxes) == gantt.MOST_CELLS
    assert picture.left_out == 5
    page = whole(html.render(build.build(record({"gantt": [{"label": "", "cells": many}]}))))
    assert "5 later actions are not drawn" in page


@pytest.mark.parametrize(("count", "text"), [(20, "F1"), (50, "F1"), (70, "1"), (90, "1"), (200, "")])
def test_a_cell_has_the_longest_label_that_it_has_room_for(count: int, text: str) -> None:
    cells = [[0, "F", 0, 1, at, at + 1] for at in range(count)]
    [picture] = gantt.pictures({"gantt": [{"label": "", "cells": cells}]})
    assert {box.text for box in picture.boxes} == {text}


def test_the_card_draws_it_with_title_description_and_hatching() -> None:
    text = whole(html.render(build.build(record(DATA))))
    [figure] = re.findall(r'<figure class="gantt">.*?</figure>', text, re.DOTALL)
    assert "<title>simulated</title>" in figure
    assert "rank 1: F1.0 B1.0 F1.1 I1.1 W1.1." in figure
    assert figure.count("<rect x=") == len(CELLS)
    assert figure.count('class="hatch" x=') == len([cell for cell in CELLS if cell[1] != "F"])
    assert set(re.findall(r"url\(#([^)]+)\)", figure)) == {"hatch-B", "hatch-I", "hatch-W"}
    assert all(f'id="{name}"' in text for name in ("hatch-B", "hatch-I", "hatch-W"))
    assert "style=" not in figure


def test_a_label_cannot_bring_markup() -> None:
    data = {"gantt": [{"label": sample.HOSTILE, "cells": CELLS}]}
    text = whole(html.render(build.build(record(data))))
    assert "<script>alert" not in text
    assert "<img" not in text


def test_the_schema_knows_charts() -> None:
    build.validate(build.build(record(DATA)))
    for broken in (
        {"label": "x", "cells": [[0, "X", 0, 0, 0, 1]]},
        {"label": "x"},
        {"label": "x", "cells": [[0, "F"]]},
    ):
        with pytest.raises(build.InvalidReport, match="gantt"):
            build.validate(build.build(record({"gantt": [broken]})))


def test_charts_are_written_as_a_trace_and_stay_in_the_data() -> None:
    separated, texts = traces.separate(record(DATA))
    [(name, text)] = texts.items()
    assert separated.results[-1].timeline == name
    assert separated.results[-1].data == DATA
    events = json.loads(text)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert [(e["pid"], e["name"], e["ts"], e["dur"]) for e in spans[:3]] == [
        (0, "F0.0", 0, 1000),
        (0, "F0.1", 1000, 1000),
        (0, "B0.0", 4000, 2000),
    ]
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"rank 0", "rank 1"}


def test_operations_of_ranks_go_before_charts() -> None:
    operation = {"kind": "send", "seq": 0, "group_seq": 0, "group": "default", "ranks": [0, 1], "tag": 0, "peer": 1}
    operation |= {"issued_ns": 1, "waited_ns": 0, "done_ns": 2, "dtype": "float32", "shape": [4], "num_bytes": 16}
    data = DATA | {"timeline": {0: {"operations": [operation], "marks": []}}}
    separated, texts = traces.separate(record(data))
    assert "send #0" in next(iter(texts.values()))
    assert separated.results[-1].data == DATA


def test_a_result_with_a_chart_stands_alone_on_its_card() -> None:
    results = [sample.result("pipeline.gpipe.bubble", "mine", case=f"test_it[{n}]", data=DATA) for n in range(2)]
    text = whole(html.render(build.build(sample.record(extra=tuple(results)))))
    assert text.count('<figure class="gantt">') == 2
