"""The failure modes that this suite reproduces, as the command line knows them."""

from __future__ import annotations

from typing import Any

from fixtures.faults.finding import entries
from impls.words import number_of

ALL = "all"  # what --scenario takes for every failure mode


def find() -> dict[str, Any]:
    """Scenario id -> its description, in the order of the ids."""
    from fixtures.faults import gallery  # the programs need torch, which a controller does without

    return dict(gallery.find())


def ids() -> list[str]:
    """The ids of all failure modes, in order; read, not imported, since whoever asks may have no use for torch."""
    return [entry.id for entry in entries()]


def listing() -> str:
    """The text of ``--list-scenarios``."""
    width = max(map(len, ids()), default=0)
    lines = [f"{entry.id:<{width}}  {entry.title['en']}" for entry in entries()]
    return "\n".join(
        [*lines, "", f"{number_of(len(lines), 'scenario')}; one is told by: pytest --scenario=NAME --explain"]
    )
