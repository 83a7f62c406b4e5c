from __future__ import annotations

import pytest

from reports import paper
from tests.reports import sample


@pytest.mark.parametrize(("text", "columns"), [("ring", 4), ("語", 2), ("é", 1), ("می\u200cرود", 5)])
def test_columns_of_a_text(text: str, columns: int) -> None:
    assert paper.width(text) == columns


@pytest.mark.parametrize(("asked", "given"), [("10", 40), ("72", 72), ("500", 120)])
def test_the_terminal_says_how_wide(asked: str, given: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", asked)
    assert paper.columns() == given


@pytest.mark.parametrize("room", [8, 40, 100])
@pytest.mark.parametrize("text", ["x" * 300, "語" * 100, "some words " * 30, sample.HOSTILE * 20, "a\n\nb", ""])
def test_no_line_is_wider_than_the_terminal(text: str, room: int) -> None:
    lines = [paper.clipped(paper.line(text), room), *paper.wrapped(text, room)]
    assert max(map(paper.width, lines)) <= room


def test_hostile_text_is_inert_and_visible() -> None:
    text = "\n".join(paper.fields({"what": sample.HOSTILE}, 100))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<script>" in text


def test_fields_without_text_are_left_out_and_commands_are_never_broken() -> None:
    command = "pytest " + "x" * 200
    assert list(paper.fields({"what": " ", "rerun": command}, 60, whole=["rerun"])) == [f"  rerun  {command}"]


def test_figures_stand_to_the_right() -> None:
    assert paper.table([("claim", "n"), ("ring", 12)], 80) == ["claim   n", "ring   12"]
