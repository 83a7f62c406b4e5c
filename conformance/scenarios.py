"""The failure modes that this suite reproduces, as the command line knows them."""

from __future__ import annotations

from typing import Any

ALL = "all"  # what --scenario takes for every failure mode


def find() -> dict[str, Any]:
    """Scenario id -> its description, in the order of the ids."""
    from fixtures.faults import gallery  # the programs need torch, which a controller does without

    return dict(gallery.find())


def ids() -> list[str]:
    """The ids of all failure modes."""
    return list(find())


def listing() -> str:
    """The text of ``--list-scenarios``."""
    known = find()
    width = max(map(len, known), default=0)
    lines = [f"{name:<{width}}  {scenario.title.en}" for name, scenario in known.items()]
    return "\n".join([*lines, "", f"{len(known)} scenarios; one is told by: pytest --scenario=NAME --explain"])
