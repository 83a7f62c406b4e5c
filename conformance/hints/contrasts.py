"""What right cases and wrong ones of a claim differ in: the number of ranks, the model, the shape of the tensors.

A contrast is told only where it is the only one; the texts are in ``signatures.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.hints.splits import Split, split
from conformance.hints.texts import text, texts
from conformance.verdict import Result, Text, Verdict

MODELS = frozenset({"mlp", "tied", "frozen", "shared", "uneven", "unused", "scalar", "mixed"})  # of fixtures.models
_ON_RINGS = "collectives."  # where the next rank and the one before have a meaning
_BRACKETS = re.compile(r"\[(.*)\]$")


def split_signature(result: Result) -> Text | None:
    """Say which of its cases are right and which are wrong, where one question tells them apart, or two together."""
    cases = result.data.get("cases", ())
    right, wrong = ([case for case in cases if (case["verdict"] == Verdict.HOLDS) is holds] for holds in (True, False))
    found = split(wrong, right)
    if len(found) == 1:
        return _of_sizes(found[0].right, found[0].wrong, result) if found[0].question == "size" else _of_split(found[0])
    if not found or not all(_is_usual(each) for each in found):
        return None
    places = [text(f"where_{each.question}", wrong=each.wrong) for each in found]
    return Text(
        en=texts()["where_both"]["en"].format(first=places[0].en, second=places[1].en),
        fa=texts()["where_both"]["fa"].format(first=places[0].fa, second=places[1].fa),
    )


def _of_split(found: Split) -> Text | None:
    return text(found.question, right=found.right, wrong=found.wrong) if _is_usual(found) else None


def _is_usual(found: Split) -> bool:
    """Whether it is the unusual case that is wrong: a remainder, a stride, another root than 0."""
    return set(found.wrong) != {False}


def by_size(broken: Sequence[Result], results: Sequence[Result]) -> Text | None:
    """By the number of ranks alone, over cases that differ in nothing else."""
    rows: dict[str, dict[int, Verdict]] = {}
    for result in results:
        is_compared = (size := size_of(result)) and not result.data.get("is_one_of_several")
        if is_compared and result.verdict in (Verdict.HOLDS, Verdict.VIOLATED):
            rows.setdefault(_without(result, str(size)), {})[size] = result.verdict
    right, wrong = _told_apart(rows)
    if not right or any(not size_of(result) for result in broken):
        return None
    return _of_sizes(right, wrong, broken[0])


def _of_sizes(right: Sequence[int], wrong: Sequence[int], result: Result) -> Text | None:
    """What numbers of ranks that are right, and others that are wrong, say about the fault; one rank says nothing."""
    if set(right) <= {1}:
        return None
    sizes = {"right": right, "wrong": wrong}
    powers = {size for size in (*right, *wrong) if size & (size - 1) == 0}
    if set(right) == powers and len(powers - {1}) > 1:
        return text("powers_of_two", **sizes)
    if set(right) - {1} == {2}:
        return text("right_for_two_ring" if result.claim.startswith(_ON_RINGS) else "right_for_two", **sizes)
    return text("sizes", **sizes)


def by_model(broken: Sequence[Result], results: Sequence[Result]) -> Text | None:
    """By the kind of model alone, over cases that differ in nothing else: one kind is wrong, others are right."""
    rows: dict[str, dict[str, Verdict]] = {}
    for result in results:
        if (kind := _model(result)) and result.verdict in (Verdict.HOLDS, Verdict.VIOLATED):
            rows.setdefault(_without(result, kind), {})[kind] = result.verdict
    right, wrong = _told_apart(rows)
    if not right or len(wrong) != 1 or any(not _model(result) for result in broken):
        return None
    return text(f"model_{wrong[0]}", right=right) if f"model_{wrong[0]}" in texts() else None


def _told_apart(rows: Mapping[str, Mapping[Any, Verdict]]) -> tuple[list[Any], list[Any]]:
    """What is right and what is wrong; nothing where the same is both, or where no two are compared."""
    wrong, right = (
        sorted({value for row in rows.values() for value, verdict in row.items() if verdict is wanted})
        for wanted in (Verdict.VIOLATED, Verdict.HOLDS)
    )
    is_compared = any(len(set(row.values())) > 1 for row in rows.values())
    return ([], []) if set(wrong) & set(right) or not is_compared else (right, wrong)


def size_of(result: Result) -> int:
    """The number of ranks that a case is about; 0 where it is about several."""
    size = result.data.get("world_size", 0)
    return size if isinstance(size, int) else 0


def _model(result: Result) -> str:
    return next((part for part in _parameters(result) if part in MODELS), "")


def _without(result: Result, parameter: str) -> str:
    """The case with one of its parameters left open."""
    parts = _parameters(result)
    if parameter in parts:
        parts[parts.index(parameter)] = "*"
    return f"{result.tier} {result.case.partition('[')[0]} {'-'.join(parts)}"


def _parameters(result: Result) -> list[str]:
    inside = _BRACKETS.search(result.case)
    return inside[1].split("-") if inside else []
