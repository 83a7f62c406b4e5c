"""The forms in docs/forms.md are taken for what the guide says that they are."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

from impls.contract import ENTRIES
from impls.contract.network import NetworkBlock
from impls.handover import arguments, cannot_be_called

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "forms.md"


def _source() -> str:
    _, _, after = GUIDE.read_text(encoding="utf-8").partition("    # mine.py\n")
    return textwrap.dedent(after.partition("\n    pytest")[0])


def test_every_form_of_the_guide_can_be_called() -> None:
    found: dict[str, object] = {}
    exec(compile(_source(), str(GUIDE), "exec"), found)
    names = [node.name for node in ast.parse(_source()).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    spelled = {spelling: entry for entry in ENTRIES.values() for spelling in entry.spellings}
    assert {vars(NetworkBlock)[name].__name__ for name in names if name in vars(NetworkBlock)} == {
        name for name in vars(NetworkBlock) if not name.startswith("_")
    }
    for name in names:
        assert cannot_be_called(found[name], spelled[name]) is None, name  # type: ignore[arg-type]


def test_the_line_for_an_unknown_name_is_understood() -> None:
    (line,) = [line.strip() for line in GUIDE.read_text(encoding="utf-8").splitlines() if "adapters = " in line]
    found: dict[str, object] = {"my_ring": lambda *args: args}
    exec(line, found)
    target = found["adapters"]["ring_time"]  # type: ignore[index]
    given = {"num_bytes": 8, "world_size": 2, "latency_s": 1, "bandwidth": 1}
    args, kwargs = arguments(target, ENTRIES["ring_time"], given)
    assert target(*args, **kwargs) == (2, 2.0)
