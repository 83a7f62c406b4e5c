"""``python -m lessons pipeline``: what it prints, draws and writes, what it says is wrong, and its exit status."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

from impls.reference.pipeline.actions import Kind
from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.names import SCHEDULES, named
from impls.reference.pipeline.simulate import simulate
from lessons import pipeline_tables, pipeline_text
from lessons.__main__ import find, main
from lessons.pipeline_cells import Cell, measured, simulated
from lessons.pipeline_executed import told
from lessons.pipeline_legal import PAIRED, Illegal, require
from lessons.pipeline_observed import Observed
from lessons.pipeline_text import chart

ROW = re.compile(r"^rank (\d+)  (.*)\|$", re.MULTILINE)
OWN = """
NUM_STAGES, NUM_MICROBATCHES = 2, 3

def bubble_1f1b(P, M):
    return {bubble}

def schedule_1f1b(P, M):
    return [["F0", "F1", "B0", "F2", "B1", "B2"], ["F0", "B0", "F1", "B1", "F2", "B2"]]
"""


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    return Printed(capsys)


class Printed:
    """Runs the lesson and keeps what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str, status: int = 0) -> str:
        assert main(["pipeline", *arguments]) == status
        out, self.err = self._capsys.readouterr()
        return out


def test_it_is_lesson_79() -> None:
    assert find("79") is find("pipeline") is not None


def test_four_ranks_and_eight_microbatches_idle_for_three_elevenths(printed: Printed) -> None:
    out = printed()
    rows = dict(ROW.findall(out))
    assert list(rows) == ["0", "1", "2", "3"]
    assert "bubble: 27.3 % of the total time, by bubble_1f1b(4, 8) of reference" in out
    assert "bubble: 27.3 % of the total time in this chart: idle for 36 of 132; 37.5 %" in out
    assert {len(row) for row in rows.values()} == {99}
    assert sum(row.count(".") for row in rows.values()) * 11 == 3 * 4 * 99


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_is_drawn_with_its_own_idle_time(printed: Printed, name: str) -> None:
    pair = 3 if name in PAIRED else None
    given = [] if pair is None else [f"--pair={pair}"]
    out = printed("--schedule", name, "--forward=2", "--input-gradient=3/2", "--weight-gradient=0.5", *given)
    costs = Costs(forward=2, input=1.5, weight=0.5, pair=pair)
    schedule = named(name, 4, 8, 2)
    timeline = simulate(schedule, costs.of_rank(schedule))
    assert f"bubble: {pipeline_text.percent(timeline.bubble_share())} of the total time in this chart" in out
    assert "by bubble_" not in out  # these are for equal times
    assert len(ROW.findall(out)) == 4


def test_the_table_has_peaks_pairs_and_copies(printed: Printed) -> None:
    out = printed("--schedule=1f1b")
    peaks = [line.split()[-3] for line in out.splitlines() if re.match(r" +\d ", line)]
    assert peaks == ["4", "3", "2", "1"]
    assert "copies of the model: 1" in out
    assert "copies of the model: 2" in printed("--schedule=dualpipe")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--schedule=dualpipe", "--stages=3", "--microbatches=7"],
            "DualPipe needs N even, M even and M >= 2N; got N = 3 ranks and M = 7 microbatches. "
            "The nearest that will do: --stages 4 --microbatches 8.",
        ),
        (["--schedule=interleaved_1f1b", "--microbatches=9"], "N divides M; got N = 4 ranks and M = 9 microbatches. "),
        (["--schedule=zbv", "--microbatches=3"], "The nearest that will do: --stages 4 --microbatches 7."),
        (["--stages=0"], "--stages 0: at least 1 is needed"),
        (["--microbatches=-1"], "--microbatches -1: at least 1 is needed"),
        (["--impl=nowhere.py"], "nowhere.py"),
        (["--svg=picture.pdf"], "give the path the ending .svg or .png"),
        (["--trace=no/such/folder/a.json"], "there is no folder no/such/folder"),
        (["--execute", "--stages=9"], "8 ranks can be run at most"),
        (["--compare", "--curve"], "--compare --curve: one table at a time"),
        (["--chunks=3"], "--chunks 3: 1f1b has no choice of them; only --schedule interleaved_1f1b has"),
        (["--curve", "--chunks=3"], "the curve has sizes of its own; leave --chunks out"),
        (["--curve", "--stages=3"], "leave --stages out, or take --compare"),
        (["--pair=5/2"], "--pair 5/2: 1f1b has no overlapped pairs; --schedule dualpipe and dualpipev have"),
        (["--compare", "--execute"], "the table is of the reference's schedules, simulated; leave --execute out"),
        (["--compare", "--impl=torch"], "leave --impl out"),
    ],
)
def test_options_of_no_use_end_in_one_sentence(printed: Printed, arguments: list[str], sentence: str) -> None:
    assert printed(*arguments, status=2) == ""
    assert sentence in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("cost", ["x", "-1", "1/0", "inf"])
def test_what_is_no_cost_is_refused(cost: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", f"--forward={cost}"])
    assert ended.value.code == 2
    assert cost in capsys.readouterr().err


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("sizes", [(1, 1), (3, 7), (5, 4), (6, 11)])
def test_the_nearest_sizes_are_legal(name: str, sizes: tuple[int, int]) -> None:
    try:
        require(name, *sizes, num_chunks=2)
    except Illegal as error:
        stages, microbatches = re.findall(r"--stages (\d+) --microbatches (\d+)\.$", str(error))[0]
        require(name, int(stages), int(microbatches), num_chunks=2)


def test_a_chart_wider_than_the_terminal_is_cut_with_a_note(printed: Printed) -> None:
    lines = printed("--width=60").splitlines()
    assert {len(line) for line in lines if line.startswith("rank ") and line.endswith(">")} == {60}
    assert "(cut: 51 of 99 columns are shown; --width=0 or --svg PATH shows all)" in lines


def test_ranks_beyond_sixteen_are_counted() -> None:
    schedule = named("gpipe", 20, 2)
    lines = list(chart(simulate(schedule)))
    assert sum(line.startswith("rank ") for line in lines) == 16
    assert "(4 more of 20 ranks)" in lines


def test_all_schedules_side_by_side(printed: Printed) -> None:
    out = printed("--compare")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip().startswith(tuple(SCHEDULES))}
    assert list(rows) == list(SCHEDULES)
    assert rows["1f1b"][:4] == ["33", "9", "27.3", "%"]
    assert rows["dualpipe"][-1] == "2"
    assert "DualPipe needs N even" in printed("--compare", "--stages=3")


def test_tables_take_chunks_and_pairs_where_these_count(printed: Printed) -> None:
    assert printed("--compare", "--pair=2") != printed("--compare")
    assert printed("--compare", "--chunks=4") != printed("--compare", "--chunks=2") == printed("--compare")


def test_the_curve_falls_with_microbatches_per_rank(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_tables, "CURVE_RANKS", (4, 8))
    rows = [line.split() for line in printed("--curve").splitlines() if re.match(r" *\d", line)]
    assert [row[:3] for row in rows[:3]] == [["4", "8", "27.3"], ["4", "16", "15.8"], ["4", "32", "8.6"]]
    assert len(rows) == 6


# -- files -------------------------------------------------------------------------------------------------------------


def test_the_picture_and_the_trace_hold_every_action(printed: Printed, tmp_path: Path) -> None:
    picture, trace = tmp_path / "a.svg", tmp_path / "a.json"
    printed("--schedule=zb_h1", f"--svg={picture}", f"--trace={trace}")
    assert ET.parse(picture).getroot().tag.endswith("svg")
    events = json.loads(trace.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert Counter(event["cat"] for event in spans) == dict.fromkeys("FIW", 32)
    assert {event["pid"] for event in spans} == {0, 1, 2, 3}
    first = next(event for event in spans if event["name"] == "F1.0")
    assert (first["ts"], first["dur"]) == (1000, 1000)


def test_both_parts_of_a_pair_are_drawn_at_once() -> None:
    schedule = named("dualpipev", 2, 4)
    found = simulated(simulate(schedule))
    assert Counter(cell.kind for cell in found)[Kind.FORWARD] == 2 * 2 * 4
    together = Counter((cell.rank, cell.begin, cell.end) for cell in found)
    assert max(together.values()) == 2


# -- implementations ---------------------------------------------------------------------------------------------------


def test_a_schedule_of_ones_own_with_its_own_sizes(printed: Printed, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN.format(bubble="(P - 1) / (M + P - 1)"))
    out = printed(f"--impl={tmp_path / 'own.py'}")
    assert "2 ranks, 3 microbatches" in out
    assert len(ROW.findall(out)) == 2
    assert "bubble: 25.0 % of the total time, by bubble_1f1b(2, 3)" in out


def test_a_bubble_that_is_not_that_of_the_chart_is_told(printed: Printed, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN.format(bubble="(P - 1) / M"))
    out = printed(f"--impl={tmp_path / 'own.py'}", status=1)
    assert "bubble_1f1b(2, 3) is 33.3 %, and the chart idles for 25.0 % of the total time (33.3 % of the time" in out


def test_a_schedule_that_is_not_right_is_drawn_and_told(printed: Printed) -> None:
    out = printed("--impl=mutants/one_f_one_b_forgets_the_last_backward", status=1)
    assert "missing: the backward of microbatch 7 on stage 0 (rank 0) is not done" in out
    assert len(ROW.findall(out)) == 4


def test_what_is_not_provided_is_the_references(printed: Printed, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN.format(bubble="0.25"))
    out = printed(f"--impl={tmp_path / 'own.py'}", "--schedule=gpipe")
    assert "gpipe of the reference (" in out
    assert "does not provide it): 2 ranks, 3 microbatches" in out


# -- executed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["1f1b", "zb_h1"])
def test_an_executed_schedule_does_everything_in_its_order(printed: Printed, tmp_path: Path, name: str) -> None:
    trace = tmp_path / "a.json"
    out = printed("--execute", f"--schedule={name}", "--stages=2", "--microbatches=2", f"--trace={trace}")
    simulated, executed = out.split("as executed\n", 1)
    assert [set(re.findall(r"[FBIW]\d", row)) for _, row in ROW.findall(executed)] == [
        set(re.findall(r"[FBIW]\d", row)) for _, row in ROW.findall(simulated)
    ]
    assert "order: that of the schedule on every rank" in executed
    names = [event["args"]["name"] for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "M"]
    assert set(names) == {"rank 0", "rank 1", "simulated", "executed"}


def test_a_pipeline_that_computes_nothing_is_told(printed: Printed, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("def train_step(stage, microbatches, targets, loss_fn):\n    return []\n")
    out = printed("--execute", f"--impl={path}", "--stages=2", "--microbatches=2", status=1)
    assert out.endswith("executed: no stage has computed anything. See: pytest --claim=pipeline.equivalence\n")


def test_a_schedule_that_a_pipeline_does_not_offer_is_told(printed: Printed, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("def train_step(stage, microbatches, targets, loss_fn):\n    return []\n")
    printed("--execute", f"--impl={path}", "--stages=2", "--microbatches=2", "--schedule=zb_h1", status=1)
    assert "takes no schedule, so it cannot be asked for zb_h1" in printed.err


MOMENTS = (("F", 0, 0, 10, 20), ("I", 0, 0, 20, 30), ("W", 0, 0, 31, 40))  # in ns


def test_both_halves_in_a_row_are_one_backward_where_the_schedule_has_one() -> None:
    whole = measured([MOMENTS], named("1f1b", 1, 1), unit_s=10e-9)
    assert [(cell.label, cell.begin, round(cell.end)) for cell in whole] == [("F0.0", 0, 1), ("B0.0", 1, 3)]
    halves = measured([MOMENTS], named("zb_h1", 1, 1), unit_s=10e-9)
    assert [cell.label for cell in halves] == ["F0.0", "I0.0", "W0.0"]


def test_another_order_is_told() -> None:
    timeline = simulate(named("1f1b", 1, 2))
    kinds = [(Kind.FORWARD, 0), (Kind.FORWARD, 1), (Kind.BACKWARD, 0), (Kind.BACKWARD, 1)]
    done = [
        Cell(rank=0, kind=kind, stage=0, microbatch=microbatch, begin=at, end=at + 1.0)
        for at, (kind, microbatch) in enumerate(kinds)
    ]
    lines = list(told(done, timeline, None))
    assert lines[-1].startswith("order: rank 0 did F0.1 B0.0 B0.1 where the schedule has B0.0 F0.1 B0.1. See: ")


def test_a_schedule_that_cannot_be_read_is_told() -> None:
    seen = Observed(impl="mine", name="1f1b", num_stages=2, num_microbatches=2, schedule=None, own=True, trouble="no")
    assert list(pipeline_text.troubles(seen, None)) == ["1f1b of mine: no"]
