"""Numbers as people write them: ``13e9``, ``7B``, ``1.5 B`` parameters; ``80e9``, ``80GB``, ``64GiB`` of memory.

A link's latency and bandwidth have units in any case: ``5us``, ``25GB/s``, ``200Gb/s``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeVar

Value = TypeVar("Value")
MOST = 10**18  # of anything: far beyond what there is, and small enough to be computed with

_THOUSANDS = {"k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}  # B: billions
_PARAMETERS = {"": 1, **_THOUSANDS}
_BYTES = {
    "": 1,
    "b": 1,
    **{unit + ending: size for unit, size in _THOUSANDS.items() if unit != "b" for ending in ("", "b")},
    **{unit + "ib": 2 ** (10 * power) for power, unit in enumerate("kmgt", start=1)},
}
_LEAST_BYTES = 1000  # of a number without a unit: whoever writes 80 means GB
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_SPELLING = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]*)?(?:e\+?[0-9]{1,3})?)\s*([a-z]*)\s*", re.IGNORECASE)


def read(option: str, parse: Callable[[str], Value], text: str) -> Value:
    """What `parse` makes of the text; its ValueError names the option."""
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None


def parameters(text: str) -> int:
    """A number of parameters: B is billions. ValueError says what to write instead."""
    return _whole(text, _PARAMETERS, "a number of parameters", "13e9, 7B or 350M")


def num_bytes(text: str) -> int:
    """An amount of memory in bytes: GB is 1e9 of them, GiB 2**30. ValueError says what to write instead."""
    found = _whole(text, _BYTES, "an amount of memory", "80GB, 80e9 or 64GiB")
    if found < _LEAST_BYTES and text.strip().replace(".", "").isdigit():
        raise ValueError(f"{text!r} has no unit; write it like {text.strip()}GB")
    return found


def count(text: str) -> int:
    """A number of things. ValueError says what to write instead."""
    return _whole(text, {"": 1}, "a count", "16")


def seconds(text: str) -> float:
    """A time with its unit. ValueError says what to write instead."""
    number, unit = _split(text)
    if number is None or (unit and unit not in _SECONDS):
        raise ValueError(f"{text!r} is not a time; write it like 5us, 0.02ms or 3e-6s")
    if not unit:
        raise ValueError(f"{text!r} has no unit; write it like 5us, 0.02ms or 3e-6s")
    return number * _SECONDS[unit]


def bandwidth(text: str) -> float:
    """Bytes per second: GB, GB/s and GiB/s count bytes, Gb/s, Gbit/s and Gbps bits. ValueError says what to write."""
    number, unit = _split(text)
    match = re.fullmatch(r"([kKMGT]?)(i?)(B|b|bit)(?:/s|ps)?", unit)
    if number is None or (unit and match is None) or number <= 0:
        raise ValueError(f"{text!r} is not a bandwidth; write it like 25GB/s, or 200Gb/s for bits")
    if match is None:
        raise ValueError(f"{text!r} has no unit; write it like 25GB/s, or 200Gb/s for bits")
    power = " kMGT".index(match[1].replace("K", "k") or " ")
    scale = 1024.0**power if match[2] else 1000.0**power
    return number * scale / (1 if match[3] == "B" else 8)


def _split(text: str) -> tuple[float | None, str]:
    """A number and what follows it; None where there is no number."""
    match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*(?:e[+-]?[0-9]{1,3})?)\s*(\S*)\s*", text)
    return (float(match[1]), match[2]) if match else (None, "")


def _whole(text: str, units: Mapping[str, int], what: str, such_as: str) -> int:
    match = _SPELLING.fullmatch(text)
    if match is None or match[2].lower() not in units:
        raise ValueError(f"{text!r} is not {what}; write it like {such_as}")
    value = Decimal(match[1].replace("_", "").replace(",", "")) * units[match[2].lower()]
    if not 1 <= value <= MOST or value != int(value):
        raise ValueError(f"{text!r} is not a whole number from 1 to 1e18; write it like {such_as}")
    return int(value)
