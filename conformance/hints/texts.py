"""The texts of signatures.toml, in both languages, with what is to be filled in."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conformance.verdict import Text


def text(name: str, **values: Any) -> Text:
    """The text of this name; several values are listed with commas between them."""
    told = {key: _listed(value) for key, value in values.items()}
    found = texts()[name]
    return Text(en=found["en"].format(**told), fa=found["fa"].format(**told))


@functools.cache
def texts() -> dict[str, dict[str, str]]:
    """All of them, by name and language."""
    return tomllib.loads(Path(__file__).with_name("signatures.toml").read_text(encoding="utf-8"))


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, Iterable) and not isinstance(value, str) else str(value)
