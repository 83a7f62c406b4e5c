"""One piece of evidence for many comparisons: the first that fails ends the check, else the least good one is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from conformance import expect
from conformance.expect import Comparison
from conformance.judge import Judge
from conformance.loop.programs import Values
from conformance.verdict import Witness

_RANK = re.compile(r"\brank (\d+)")
_STEP = re.compile(r"\bstep \d+")
_MICROBATCHES = re.compile(r"\b(\d+) microbatches\b")

Named = tuple[str, Comparison]  # where (a rank, a step), and what was found there


def judge_all(
    judge: Judge,
    found: Iterable[Named],
    message: str,
    *,
    witness: Witness = Witness.VALUE,
    explain: Callable[[], str | None] = lambda: None,
) -> None:
    """Every comparison must match; ``message`` says what they are about.

    ``explain`` is asked once one does not: the name of another computation whose values these are, if they are one's.
    """
    worst: Comparison | None = None
    count = 0
    found = iter(found)
    right: list[Named] = []
    for where, comparison in found:
        if not comparison.matches:
            data = in_common((where, comparison), [*right, *found])
            if (instead := explain()) is not None:
                data["instead"] = instead
            judge.that(comparison, witness=witness, message=f"{message}, {where}", data=data)
        right.append((where, comparison))
        if worst is None or (comparison.error or 0.0) > (worst.error or 0.0):
            worst = comparison
        count += 1
    assert worst is not None, "nothing was compared"
    judge.holds(expected=worst.expected, observed=worst.observed, witness=witness, message=message, examples=count)


def in_common(first: Named, others: Sequence[Named]) -> dict[str, Any]:
    """What the broken comparisons share with the first: those of the same case and step, over all ranks and names."""
    place = _place(first[0])
    same = [first, *((where, comparison) for where, comparison in others if _place(where) == place)]
    patterns = [dict(comparison.pattern) for _, comparison in same if not comparison.matches and comparison.pattern]
    data: dict[str, Any] = {"pattern": patterns[0] if _are_alike(patterns) else {"irregular": True}} if patterns else {}
    by_rank: dict[int, bool] = {}
    for where, comparison in same:
        if rank := _RANK.search(where):
            by_rank[int(rank[1])] = by_rank.get(int(rank[1]), True) and comparison.matches
    if len(by_rank) > 1:
        data["ranks"] = {
            word: sorted(rank for rank, is_right in by_rank.items() if is_right is right)
            for word, right in (("right", True), ("wrong", False))
        }
    if len(by_step := _by_step(place[0], [first, *others])) > 1:
        data["steps"] = {
            word: sorted(step for step, is_right in by_step.items() if is_right is right)
            for word, right in (("right", True), ("wrong", False))
        }
    if _MICROBATCHES.search(place[0]):
        data["factors"] = _by_microbatches([first, *others])
    return data


def _by_microbatches(found: Sequence[Named]) -> list[list[float]]:
    """The number of microbatches of each broken case, with the factor that all of its values are off by; 0 for none."""
    cases: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for where, comparison in found:
        if not comparison.matches and _MICROBATCHES.search(where) and comparison.pattern:
            cases.setdefault(_place(where), []).append(comparison.pattern)
    return [
        [int(_MICROBATCHES.findall(place)[0]), patterns[0].get("factor", 0) if _are_alike(patterns) else 0]
        for (place, _), patterns in cases.items()
    ]


def _by_step(case: str, found: Sequence[Named]) -> dict[int, bool]:
    """Whether each step of a case is right, on all ranks and in all names."""
    steps: dict[int, bool] = {}
    for where, comparison in found:
        if _place(where)[0] == case and (step := _STEP.search(where)):
            number = int(step[0].removeprefix("step "))
            steps[number] = steps.get(number, True) and comparison.matches
    return steps


def _are_alike(patterns: Sequence[Mapping[str, Any]]) -> bool:
    """The same regularity; where a tail begins depends on the tensor, as its length does."""
    bare = [{kind: value for kind, value in entry.items() if kind not in ("tail", "of")} for entry in patterns]
    return all(
        entry == bare[0] and told.keys() == patterns[0].keys() for entry, told in zip(bare, patterns, strict=True)
    )


def _place(where: str) -> tuple[str, str]:
    """The case and the step that a comparison is about, without its rank and name."""
    step = _STEP.search(where)
    return _STEP.sub("", where.partition("rank ")[0]), step[0] if step else ""


def gradients_as(observed: Values, expected: Values) -> Comparison:
    """Equal numbers under equal names; where no rank has a gradient, None and zeros are both right, and -0.0 is 0.0."""
    return expect.same(_comparable(observed, expected), _comparable(expected, expected))


def _comparable(values: Values, expected: Values) -> Values:
    found: Values = {}
    for name, value in values.items():
        nothing = name in expected and expected[name] is None and value is not None and not value.any()
        found[name] = None if value is None or nothing else value + 0.0
    return found
