"""Numbers as people write them: ``13e9``, ``7B``, ``1.5 B`` parameters; ``80e9``, ``80GB``, ``64GiB`` of memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

Parse = Callable[[str], int]
MOST = 10**18  # of anything: far beyond what there is, and small enough to be computed with

_THOUSANDS = {"k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}  # B: billions
_PARAMETERS = {"": 1, **_THOUSANDS}
_BYTES = {
    "": 1,
    "b": 1,
    **{unit + ending: size for unit, size in _THOUSANDS.items() if unit != "b" for ending in ("", "b")},
    **{unit + "ib": 2 ** (10 * power) for power, unit in enumerate("kmgt", start=1)},
}
_SPELLING = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]*)?(?:e\+?[0-9]{1,3})?)\s*([a-z]*)\s*", re.IGNORECASE)


def parameters(text: str) -> int:
    """A number of parameters: B is billions. ValueError says what to write instead."""
    return _whole(text, _PARAMETERS, "a number of parameters", "13e9, 7B or 350M")


def num_bytes(text: str) -> int:
    """An amount of memory in bytes: GB is 1e9 of them, GiB 2**30. ValueError says what to write instead."""
    return _whole(text, _BYTES, "an amount of memory", "80GB, 80e9 or 64GiB")


def count(text: str) -> int:
    """A number of things. ValueError says what to write instead."""
    return _whole(text, {"": 1}, "a count", "16")


def _whole(text: str, units: Mapping[str, int], what: str, such_as: str) -> int:
    match = _SPELLING.fullmatch(text)
    if match is None or match[2].lower() not in units:
        raise ValueError(f"{text!r} is not {what}; write it like {such_as}")
    value = Decimal(match[1].replace("_", "").replace(",", "")) * units[match[2].lower()]
    if not 1 <= value <= MOST or value != int(value):
        raise ValueError(f"{text!r} is not a whole number from 1 to 1e18; write it like {such_as}")
    return int(value)
