"""The failure modes that this suite reproduces: every module of ``fixtures.faults`` with a constant ``SCENARIO``."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Any

import fixtures.faults


@functools.cache
def find() -> dict[str, Any]:
    """Scenario id -> its description, in the order of the ids."""
    names = [info.name for info in pkgutil.iter_modules(fixtures.faults.__path__) if not info.name.startswith("_")]
    modules = [importlib.import_module(f"fixtures.faults.{name}") for name in names]
    found = [module.SCENARIO for module in modules if hasattr(module, "SCENARIO")]
    return {scenario.id: scenario for scenario in sorted(found, key=lambda scenario: str(scenario.id))}


def ids() -> list[str]:
    """The ids of all failure modes."""
    return list(find())


def listing() -> str:
    """The text of ``--list-scenarios``."""
    known = find()
    width = max(map(len, known), default=0)
    lines = [f"{name:<{width}}  {scenario.title.en}" for name, scenario in known.items()]
    return "\n".join([*lines, "", f"{len(known)} scenarios; one is told by: pytest --scenario=NAME --explain"])
