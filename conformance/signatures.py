"""Frequent faults, known by their numbers: what all broken cases of one claim have in common, and what that means.

A signature is named only where no other fault fits the numbers: a factor must follow N over several N, a pattern must
be in every broken case, and one irregular case ends the search. It comes before the claim's own hint and replaces
nothing. The texts are in ``signatures.toml``.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.verdict import Result, Text, Tier, Verdict

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_BRACKETS = re.compile(r"\[(.*)\]$")
_NEAR = 0.02  # relative: of a ratio of bytes, or of a factor
_SUMS = "collectives.values."  # claims about sums and copies; elsewhere the right value is a mean


def signature(results: Sequence[Result]) -> Text | None:
    """Name the fault behind the broken cases of one claim of one implementation; None where it is not certain."""
    if any(result.verdict in (Verdict.CRASHES, Verdict.HANGS) for result in results):
        return None
    for tier in Tier:  # the most basic cases that are broken; beyond, more is asked for than one number shows
        cases = [result for result in results if result.tier is tier]
        if broken := [result for result in cases if result.verdict is Verdict.VIOLATED]:
            if _differs_by_rank(broken):
                return _by_rank(broken)
            found = (look(broken, cases) for look in (_by_pattern, _by_bytes, _by_size))
            return next((text for text in found if text is not None), None)
    return None


def _by_pattern(broken: Sequence[Result], results: Sequence[Result]) -> Text | None:
    patterns = [dict(result.data["pattern"]) for result in broken if result.data.get("pattern")]
    kinds = {kind for pattern in patterns for kind in pattern if kind != "of"}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind == "factor":
        return _factor(broken, results)
    values = {pattern[kind] for pattern in patterns}
    if kind == "tail":
        return _tail(broken)
    if kind == "rounded" and len(values) == 1:
        return _text("rounded", dtype=values.pop())
    if kind == "shifted" and len(values) == 1:
        return _text("shifted", places=values.pop())
    return _text(kind) if kind in ("zeros", "row", "finite") else None


def _factor(broken: Sequence[Result], results: Sequence[Result]) -> Text | None:
    seen = [result for result in broken if "factor" in result.data.get("pattern", {})]
    by_size = {(_size(result), result.data["pattern"]["factor"]) for result in seen if _size(result)}
    is_sum = all(result.claim.startswith(_SUMS) for result in broken)
    sizes = {size for size, _ in by_size}
    with_count = [result for result in seen if "num_microbatches" in result.data]
    microbatches = [(result.data["num_microbatches"], result.data["pattern"]["factor"]) for result in with_count]
    counts = {count for count, _ in microbatches}
    if len(counts) > 1 and all(_is_near(factor, count) for count, factor in microbatches):
        return _text("microbatches_summed")
    if len(counts) > 1 and all(_is_near(factor, 1 / count) for count, factor in microbatches):
        return _text("microbatches_divided")
    held = {_size(result) for result in results if result.verdict is Verdict.HOLDS}
    if sizes and 2 not in sizes and 2 in held and all(_is_near(factor, size / 2) for size, factor in by_size):
        return _text("written_out_two")
    if len(sizes) < 2:
        return None
    if all(_is_near(factor, size) for size, factor in by_size):
        return None if is_sum else _text("summed")
    if all(_is_near(factor, 1 / size) for size, factor in by_size):
        return _text("averaged" if is_sum else "divided_twice")
    factors = [factor for _, factor in by_size]
    if all(_is_near(factor, factors[0]) for factor in factors):
        return _text("constant", factor=f"{factors[0]:g}")
    return None


def _tail(broken: Sequence[Result]) -> Text | None:
    """The elements that are left over when N does not divide them, or the last of N chunks."""
    found = [(_size(r), r.data["pattern"]) for r in broken if r.data.get("pattern") and _size(r)]
    if not found:
        return None
    lost = [(size, pattern["of"], pattern["of"] - pattern["tail"]) for size, pattern in found if size]
    if all(of % size and count == of % size for size, of, count in lost):
        return _text("remainder")
    chunks = all(count in (of // size, -(-of // size), of - (size - 1) * -(-of // size)) for size, of, count in lost)
    return _text("last_chunk") if chunks and len({size for size, _, _ in lost}) > 1 else None


def _by_bytes(broken: Sequence[Result], results: Sequence[Result]) -> Text | None:
    ratios = {size: ratio for size, ratio in _ratios(broken) if size > 2}
    if len(ratios) < 2 or any(result.unit != "bytes" for result in broken):
        return None
    if all(_is_near(ratio, size) for size, ratio in ratios.items()):
        return _text("whole_tensor")
    return _text("twice") if all(_is_near(ratio, 2) for ratio in ratios.values()) else None


def _ratios(broken: Sequence[Result]) -> Iterator[tuple[int, float]]:
    for result in broken:
        numbers = [_NUMBER.findall(text) for text in (result.observed, result.expected)]
        if result.unit == "bytes" and _size(result) and all(len(found) == 1 for found in numbers):
            observed, expected = (float(found[0].replace(",", "")) for found in numbers)
            if expected:
                yield _size(result), observed / expected


def _by_rank(broken: Sequence[Result]) -> Text | None:
    """Only rank 0 right, on more than two ranks: with two it might as well be the last one that is wrong."""
    told = [
        entry for result in broken if (entry := result.data.get("ranks")) and len(entry["right"] + entry["wrong"]) > 2
    ]
    return _text("only_rank_zero") if told and all(entry["right"] == [0] for entry in told) else None


def _differs_by_rank(broken: Sequence[Result]) -> bool:
    """Whether some rank is right where another is wrong: then the numbers are not what the fault is about."""
    return any(result.data.get("ranks", {}).get("right") for result in broken)


def _by_size(broken: Sequence[Result], results: Sequence[Result]) -> Text | None:
    """By the number of ranks alone, over cases that differ in nothing else."""
    rows: dict[str, dict[int, Verdict]] = {}
    for result in results:
        if (size := _size(result)) and result.verdict in (Verdict.HOLDS, Verdict.VIOLATED):
            rows.setdefault(_without_size(result), {})[size] = result.verdict
    wrong = {size for row in rows.values() for size, verdict in row.items() if verdict is Verdict.VIOLATED}
    right = {size for row in rows.values() for size, verdict in row.items() if verdict is Verdict.HOLDS}
    is_compared = any(len(set(row.values())) > 1 for row in rows.values())
    if wrong & right or not is_compared or any(not _size(result) for result in broken):
        return None
    powers = {size for size in wrong | right if size & (size - 1) == 0}
    if right == powers and len(powers - {1}) > 1:
        return _text("powers_of_two")
    if 2 in right and min(wrong) > 2:
        return _text("right_for_two", sizes=", ".join(map(str, sorted(wrong))))
    return None


def _size(result: Result) -> int:
    size = result.data.get("world_size", 0)
    return size if isinstance(size, int) else 0


def _without_size(result: Result) -> str:
    size = str(_size(result))
    inside = _BRACKETS.search(result.case)
    parts = ["N" if part == size else part for part in inside[1].split("-")] if inside else []
    return f"{result.tier} {result.case.partition('[')[0]} {'-'.join(parts)}"


def _is_near(value: float, target: float) -> bool:
    return abs(value - target) <= _NEAR * abs(target)


def _text(name: str, **values: Any) -> Text:
    texts = _texts()[name]
    return Text(en=texts["en"].format(**values), fa=texts["fa"].format(**values))


@functools.cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
