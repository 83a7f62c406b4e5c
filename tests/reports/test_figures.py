from __future__ import annotations

from typing import Any

import pytest

from conformance.verdict import Verdict
from reports import axes, bars, build, figures, html, plot
from reports.axes import Kind
from tests.reports import sample


def report(*data: dict[str, Any], impl: str = "mine") -> dict[str, Any]:
    extra = [sample.result("loop.same-init", impl, case=str(number), data=one) for number, one in enumerate(data)]
    return build.build(sample.record(extra=tuple(extra)))


# -- axes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "low", "high", "labels"),
    [
        (Kind.LINEAR, 0, 10, ["0", "2", "4", "6", "8", "10"]),
        (Kind.LINEAR, 0, 0.9, ["0", "0.2", "0.4", "0.6", "0.8"]),
        (Kind.LINEAR, 3, 3, ["3", "3.2", "3.4", "3.6", "3.8", "4"]),
        (Kind.SHARE, 0, 0.43, ["0%", "10%", "20%", "30%", "40%"]),
        (Kind.BYTES, 0, 3 * 2**20, ["0", "0.5", "1", "1.5", "2", "2.5", "3"]),
        (Kind.LOG, 0.1, 1000, ["0.1", "1", "10", "100", "1000"]),
        (Kind.LOG, 0, 1, ["1e-12", "1e-09", "1e-06", "0.001", "1"]),
    ],
)
def test_an_axis_has_round_values(kind: Kind, low: float, high: float, labels: list[str]) -> None:
    assert [tick.label for tick in axes.axis(kind, low, high, 0, 100).ticks()] == labels


@pytest.mark.parametrize("kind", Kind)
def test_an_axis_leads_from_its_begin_to_its_end(kind: Kind) -> None:
    axis = axes.axis(kind, 2, 50, 300, 20)
    assert (axis.place(2), axis.place(50)) == (300, 20)
    assert 20 < axis.place(10) < 300


def test_bytes_are_told_in_the_unit_of_the_largest() -> None:
    assert [axes.axis(Kind.BYTES, 0, top, 0, 1).unit for top in (900, 2**10, 2**20, 2**30)] == [
        "B",
        "KiB",
        "MiB",
        "GiB",
    ]


# -- lines and points --------------------------------------------------------------------------------------------------


def test_plots_of_one_figure_share_a_picture_and_each_line_has_a_colour() -> None:
    tree = {"plot": "tree-bytes", "points": [{"x": 4, "observed": 2.0**25, "formula": 2.0**25}]}
    [figure] = [found for found in figures.figures(report(tree)) if found.name == "bytes"]
    [picture] = figure.plots
    assert [(curve.line, curve.colour) for curve in picture.curves] == [("ring-bytes", 0), ("tree-bytes", 1)]
    assert {(series.impl, series.line, series.colour) for series in picture.series} == {
        ("reference", "ring-bytes", 0),
        ("mine", "ring-bytes", 0),
        ("mine", "tree-bytes", 1),
    }
    assert picture.series[0].marker != picture.series[1].marker


def test_points_without_a_formula_are_joined() -> None:
    points = [{"x": step, "observed": apart, "line": "spread-fault"} for step, apart in enumerate((1.0, 0.5))]
    points += [{"x": step, "observed": 0.0, "line": "spread-cured"} for step in range(2)]
    [picture] = plot.pictures(report({"plot": "spread", "points": points}), ["spread"])
    assert picture.curves == ()
    assert [(series.line, series.path.count("L")) for series in picture.series] == [
        ("spread-fault", 1),
        ("spread-cured", 1),
    ]
    assert picture.table[0] == ("spread-fault", "mine", "0", "1", "")


def test_a_curve_of_the_data_is_drawn_as_it_is() -> None:
    data = {
        "plot": "bubble-share",
        "line": "zbv",
        "label": "N = 4",
        "curve": [[2, 0.5], [3, 0.4], [4, 0.3]],
        "points": [{"x": 2, "observed": 0.5, "formula": 0.5}, {"x": 4, "observed": 0.3, "formula": 0.3}],
    }
    [picture] = plot.pictures(report(data), ["bubble-share"], plot.Shape(y=Kind.SHARE))
    assert (picture.label, picture.curves[0].path.count("L")) == ("N = 4", 2)
    places = picture.curves[0].path.replace("L", "M").split("M")
    assert all(f"{x:g},{y:g}" in places for x, y, _ in picture.series[0].dots)


@pytest.mark.parametrize(
    "data",
    [
        {"plot": "spread"},
        {"plot": "spread", "points": None},
        {"plot": "spread", "points": ["no point", {"x": "4", "observed": 1}, {"x": 4}, {"observed": 4}]},
        {"plot": "spread", "points": [{"x": float("inf"), "observed": 1}]},
        {"plot": ["spread"], "points": [{"x": 1, "observed": 1}]},
        {"bars": [7, {"observed": "1", "formula": 1}, {"observed": -1, "formula": 1}]},
    ],
)
def test_what_is_no_figure_is_left_out(data: dict[str, Any]) -> None:
    assert [figure.name for figure in figures.figures(report(data))] == ["bytes"]


# -- bars --------------------------------------------------------------------------------------------------------------


def bar(group: str, x: str, observed: float, formula: float, label: str = "") -> dict[str, Any]:
    return {"group": group, "x": x, "label": label, "observed": observed, "formula": formula}


def test_each_convention_has_a_picture_and_each_stage_its_places() -> None:
    own = {"bars": [bar("DDP", "2", 16, 16), bar("ZeRO-1", "2", 10, 10), bar("ZeRO-1", "4", 8, 7, "other")]}
    first, second = bars.pictures(report(own))
    assert [tick.label for tick in first.groups] == ["DDP", "ZeRO-1"]
    assert [tick.label for tick in first.places] == ["2", "2"]
    assert second.label == "other"
    assert second.table == (("ZeRO-1", "4", "mine", "8", "7"),)


def test_a_bar_ends_at_the_formulas_line_where_it_is_the_formula() -> None:
    [picture] = bars.pictures(report({"bars": [bar("DDP", "2", 16, 16), bar("DDP", "4", 20, 16)]}))
    (on, over), lines = picture.bars, picture.lines
    assert on.y == lines[0].y
    assert over.y < lines[1].y
    assert all(found.y + found.height == plot.HEIGHT - plot.BOTTOM for found in picture.bars)


def test_implementations_stand_side_by_side() -> None:
    both = report({"bars": [bar("DDP", "2", 16, 16)]}, {"bars": [bar("DDP", "10", 12, 16)]})
    both["results"].append({**both["results"][-1], "impl": "torch", "data": {"bars": [bar("DDP", "2", 20, 16)]}})
    [picture] = bars.pictures(both)
    mine, torch, _ = picture.bars
    assert (mine.colour, torch.colour) == (0, 1)
    assert mine.x + mine.width < torch.x
    assert [tick.label for tick in picture.places] == ["2", "10"]


# -- on the page -------------------------------------------------------------------------------------------------------


def test_every_picture_has_a_name_a_description_and_a_table() -> None:
    data: list[dict[str, Any]] = [
        {"plot": name, "label": "N = 4", "points": [{"x": 1, "observed": 1, "formula": 1}]}
        for name in ("tree-bytes", "ring-time", "tree-time", "bubble-share", "spread")
    ]
    text = html.render(report(*data, {"bars": [bar("DDP", "2", 16, 16, "4 + 4 + 8")]}))
    drawn = text.split('id="pictures"')[1].split("</section>")[0].split("<figure")[1:]
    assert len(drawn) == 6
    for figure in drawn:
        assert 'role="img"' in figure
        assert "<title data" in figure
        assert "<desc data" in figure
        assert "<table" in figure


def test_a_hostile_label_is_text() -> None:
    hostile = {"plot": "spread", "label": sample.HOSTILE, "points": [{"x": 1, "observed": 1, "line": sample.HOSTILE}]}
    text = html.render(report(hostile, {"bars": [bar(sample.HOSTILE, sample.HOSTILE, 1, 1, sample.HOSTILE)]}))
    assert text.count("<script>") == 1
    assert "<img" not in text


def test_a_report_without_data_has_no_pictures() -> None:
    plain = build.build(sample.record())
    plain["results"] = [{**result, "data": {}} for result in plain["results"]]
    assert figures.figures(plain) == []
    assert 'id="pictures"' not in html.render(plain)


def test_a_broken_claims_points_are_drawn_too() -> None:
    broken = {"plot": "ring-bytes", "points": [{"x": 4, "observed": 2.0**26, "formula": 2.0**25}], "label": "other"}
    extra = sample.result("collectives.ring.bytes", "mine", Verdict.VIOLATED, case="n=4", data=broken)
    found = plot.pictures(build.build(sample.record(extra=(extra,))), ["ring-bytes"], plot.Shape(y=Kind.BYTES))
    assert [picture.label for picture in found] == ["", "other"]
