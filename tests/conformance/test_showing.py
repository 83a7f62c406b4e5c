"""The text of ``python -m conformance show``: what was taken for what and why, what is open, and the table for it."""

from __future__ import annotations

from typing import Any

from conformance.checks import Description
from conformance.options import beside
from conformance.showing import lines
from impls.contract import BLOCKS

MISSING = {name: f"mine.py has no {name}" for names in BLOCKS.values() for name in names}


def text(**fields: Any) -> str:
    known: dict[str, Any] = {"name": "mine.py", "spec": "mine.py", "path": "/mine.py", "missing": MISSING}
    return "\n".join(lines(Description(**{**known, **fields})))


def test_what_is_taken_is_told_with_its_reason_and_its_arguments() -> None:
    told = text(
        spellings={"DataParallel": "MyDDP (mine.py:3)"},
        reasons={"DataParallel": "by the parts of its name"},
        bindings={"DataParallel": {"model": "module", "group": "group", "verbose": ""}},
        around={"DataParallel": ["after backward: sync()"], "": ["once, before anything else: init_tp()"]},
    )
    assert "data_parallel: 1 of 11" in told
    assert "MyDDP (mine.py:3): by the parts of its name" in told
    assert "is handed model=module, group; keeps the default of verbose" in told
    assert "after backward: sync()" in told
    assert "once, before anything else: init_tp()" in told


def test_empty_blocks_are_one_line() -> None:
    (line,) = [line for line in text().splitlines() if line.startswith("nothing for: ")]
    assert line == f"nothing for: {', '.join(BLOCKS)}"


def test_what_is_open_is_settled_by_a_table() -> None:
    reason = "A (mine.py:1) and B (mine.py:9) could each be DataParallel"
    told = text(
        missing=MISSING | {"DataParallel": reason},
        ambiguous={"DataParallel": ["A", "B"]},
        proposals={"add_up": ["all_reduce", "ring_allreduce"], "again": ["all_reduce"]},
        remarks=(reason,),
    )
    assert f"- {reason}" in told
    assert '      "DataParallel": "A",  # or B' in told
    assert '      "all_reduce": "add_up",  # or as ring_allreduce' in told
    assert '  [adapters]\n  DataParallel = "A"\n  all_reduce = "add_up"' in told
    assert "again" not in told


def test_nothing_open_needs_no_table() -> None:
    assert "adapters" not in text(spellings={"all_reduce": "all_reduce (mine.py:1)"})


def test_the_command_that_checks_it_has_what_stands_beside_it() -> None:
    assert "pytest -n 4 '--impl=mine.py?device=cpu'" in text(spec="mine.py?device=cpu")


def test_what_is_bundled_has_nothing_beside_it() -> None:
    assert beside("reference", "table.toml", True) == "reference"
    assert beside("mine.py:A", None, True) == "mine.py:A?device=cpu"
