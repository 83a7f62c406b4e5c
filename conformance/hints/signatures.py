"""Frequent faults, known by their numbers: what all broken cases of one claim have in common, and what that means.

A signature is named only where no other fault fits the numbers: a factor must follow N over several N, a pattern must
be in every broken case, and one irregular case ends the search. It comes before the claim's own hint and replaces
nothing. What one case tells by itself goes before what is common to several. The texts are in ``signatures.toml``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from conformance.hints.contrasts import by_model, by_size, size_of
from conformance.hints.texts import text, texts
from conformance.verdict import Result, Text, Tier, Verdict

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_NEAR = 0.02  # relative: of a ratio of bytes, or of a factor
_BEFORE_THE_CLAIM = ("no_schedule",)
_SUMS = "collectives.values."  # claims about sums and copies; elsewhere the right value is a mean


def signature(results: Sequence[Result]) -> Text | None:
    """Name the fault behind the broken cases of one claim of one implementation; None where it is not certain."""
    results = [case for result in results for case in _cases(result)]
    if any(result.verdict in (Verdict.CRASHES, Verdict.HANGS) for result in results):
        return None
    for tier in Tier:  # the most basic cases that are broken; beyond, more is asked for than one number shows
        cases = [result for result in results if result.tier is tier]
        if broken := [result for result in cases if result.verdict is Verdict.VIOLATED]:
            if _differs_by_rank(broken):
                return _by_rank(broken)
            found = (look(broken, cases) for look in (_by_step, _by_pattern, _by_bytes, by_size, by_model))
            return next((text for text in found if text is not None), None)
    return None


def own_signature(result: Result) -> Text | None:
    """Name the fault that one broken case tells by itself: its values are those of another computation, exactly."""
    instead = result.data.get("instead")
    return text(instead) if instead in texts() else None


def stands_alone(result: Result) -> bool:
    """Whether the check ended before it came to what its claim is about, so that the claim's own hint says nothing."""
    return result.data.get("instead") in _BEFORE_THE_CLAIM


def _cases(result: Result) -> Iterator[Result]:
    """Each of the cases that one result is about; those whose numbers are rounded only where no others are broken."""
    cases = result.data.get("cases", ())
    if not cases:
        yield result
    is_broken = [case for case in cases if case["verdict"] != Verdict.HOLDS]
    exact = [case for case in is_broken if case["values"] != "real"]
    for case in cases:
        if case["verdict"] == Verdict.HOLDS or case in (exact or is_broken):
            yield dataclasses.replace(
                result, verdict=Verdict(case["verdict"]), data={**case, "is_one_of_several": True}
            )


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
        return text("rounded", dtype=values.pop())
    if kind == "shifted":
        return _shifted(broken, values)
    return text(kind) if kind in ("zeros", "row", "finite") else None


def _factor(broken: Sequence[Result], results: Sequence[Result]) -> Text | None:
    seen = [result for result in broken if "factor" in result.data.get("pattern", {})]
    by_size = {(size_of(result), result.data["pattern"]["factor"]) for result in seen if size_of(result)}
    is_sum = all(result.claim.startswith(_SUMS) for result in broken)
    sizes = {size for size, _ in by_size}
    microbatches = [(count, factor) for result in seen for count, factor in result.data.get("factors", ())]
    counts = {count for count, _ in microbatches}
    if len(counts) > 1 and all(_is_near(factor, count) for count, factor in microbatches):
        return text("microbatches_summed")
    if len(counts) > 1 and all(_is_near(factor, 1 / count) for count, factor in microbatches):
        return text("microbatches_divided")
    held = {size_of(result) for result in results if result.verdict is Verdict.HOLDS}
    if sizes and 2 not in sizes and 2 in held and all(_is_near(factor, size / 2) for size, factor in by_size):
        return text("written_out_two")
    if len(sizes) < 2:
        return None
    if all(_is_near(factor, size) for size, factor in by_size):
        return None if is_sum else text("summed")
    if all(_is_near(factor, 1 / size) for size, factor in by_size):
        return text("averaged" if is_sum else "divided_twice")
    factors = [factor for _, factor in by_size]
    if all(_is_near(factor, factors[0]) for factor in factors):
        return text("constant", factor=f"{factors[0]:g}")
    return None


def _tail(broken: Sequence[Result]) -> Text | None:
    """The elements that are left over when N does not divide them, or the last of N chunks."""
    found = [(size_of(r), r.data["pattern"]) for r in broken if r.data.get("pattern") and size_of(r)]
    if not found:
        return None
    lost = [(size, pattern["of"], pattern["of"] - pattern["tail"]) for size, pattern in found if size]
    if all(of % size and count == of % size for size, of, count in lost):
        return text("remainder")
    chunks = all(count in (of // size, -(-of // size), of - (size - 1) * -(-of // size)) for size, of, count in lost)
    return text("last_chunk") if chunks and len({size for size, _, _ in lost}) > 1 else None


def _shifted(broken: Sequence[Result], places: set[int]) -> Text | None:
    """By a chunk whatever N is, or by the same number of places; a chunk may have one element more than others."""
    found = [(size_of(r), r.data["pattern"]) for r in broken if r.data.get("pattern")]
    back = [(size, pattern["of"] - pattern["shifted"], pattern["of"]) for size, pattern in found]
    if all(size and count in (of // size, -(-of // size)) for size, count, of in back) and len(places) > 1:
        return text("shifted_chunk")
    return text("shifted", places=next(iter(places))) if len(places) == 1 else None


def _by_step(broken: Sequence[Result], results: Sequence[Result]) -> Text | None:
    """Right in the first step of every broken case, and wrong in the next or a later one."""
    steps = [result.data.get("steps") for result in broken]
    told = [entry for entry in steps if entry]
    is_later = len(told) == len(steps) and all(0 in entry["right"] and entry["wrong"] for entry in told)
    return text("later_step") if told and is_later else None


def _by_bytes(broken: Sequence[Result], results: Sequence[Result]) -> Text | None:
    ratios = {size: ratio for size, ratio in _ratios(broken) if size > 2}
    if len(ratios) < 2 or not all(map(_counts_bytes, broken)):
        return None
    if all(_is_near(ratio, size) for size, ratio in ratios.items()):
        return text("whole_tensor")
    if all(_is_near(ratio, size / 2) for size, ratio in ratios.items()):
        return text("whole_tensor_once")
    return text("twice") if all(_is_near(ratio, 2) for ratio in ratios.values()) else None


def _ratios(broken: Sequence[Result]) -> Iterator[tuple[int, float]]:
    for result in broken:
        observed, expected = _drawn(result) or (_figure(result.observed), _figure(result.expected))
        if _counts_bytes(result) and size_of(result) and observed and expected:
            yield size_of(result), observed / expected


def _counts_bytes(result: Result) -> bool:
    return result.unit == "bytes" or result.claim.endswith(".bytes")


def _drawn(result: Result) -> tuple[float, float] | None:
    """What the report draws for a case: the bytes that were seen, and those of the formula."""
    points = result.data.get("points", ())
    return (points[0]["observed"], points[0]["formula"]) if len(points) == 1 and "formula" in points[0] else None


def _figure(text: str) -> float | None:
    """The number that a text ends in, after the formula that gives it; None where there are several."""
    found = _NUMBER.findall(text.rpartition("= ")[2])
    return float(found[0].replace(",", "")) if len(found) == 1 else None


def _by_rank(broken: Sequence[Result]) -> Text | None:
    """Only rank 0 right, or the root, on more than two ranks: with two it might as well be the last that is wrong."""
    kinds = {kind for result in broken for kind in result.data.get("pattern", {})}
    if kinds & {"shifted", "tail"} and all(result.data.get("is_one_of_several") for result in broken):
        return _by_pattern(broken, [])
    told = [
        (entry["right"], result.data.get("src", 0))
        for result in broken
        if (entry := result.data.get("ranks")) and len(entry["right"] + entry["wrong"]) > 2
    ]
    if told and all(right == [0] for right, _ in told):
        return text("only_rank_zero")
    return text("only_root") if told and all(right == [root] for right, root in told) else None


def _differs_by_rank(broken: Sequence[Result]) -> bool:
    """Whether some rank is right where another is wrong: then the numbers are not what the fault is about."""
    return any(result.data.get("ranks", {}).get("right") for result in broken)


def _is_near(value: float, target: float) -> bool:
    return abs(value - target) <= _NEAR * abs(target)
