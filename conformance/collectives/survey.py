"""Once a case is broken: which others are, too. A student is told where it goes wrong, not only that it does.

The rest of the table is examined, and then the simplest broken case again with one thing about it changed at a time:
what makes it right is what the fault is about. See ``conformance.hints.splits``, which draws the conclusion.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from conformance.collectives.layouts import lay_out
from conformance.judge import Broken
from conformance.verdict import Verdict
from fixtures.draws import Case

BUDGET_S = 60.0  # far more than any case takes that ends
MAX_HANGS = 6  # each takes about a second; what is hidden by then is not told
Seen = tuple[Case, Broken | None]


def survey(seen: list[Seen], table: Sequence[Case], examine: Callable[[Case], None]) -> list[dict[str, Any]]:
    """What became of all cases, those already seen among them, as data; nothing if too few can be examined."""
    until = time.monotonic() + BUDGET_S
    done = {repr(case) for case, _ in seen}
    telling = [dataclasses.replace(case, values=_telling(case.values)) for case in table]
    hung: set[int] = set()
    num_hangs = 0
    for others in (telling, neighbours(_simplest(seen), sorted({case.world_size for case in table}))):
        for case in others:
            if repr(case) in done or (others is telling and case.world_size in hung):  # one that hangs takes a second
                continue
            done.add(repr(case))
            ending = ending_of(case, examine)
            if time.monotonic() > until or (ending is not None and not _says_something(ending)):
                return []
            seen.append((case, ending))
            if ending is not None and ending.verdict is Verdict.HANGS:
                hung.add(case.world_size)
                num_hangs += 1
            if num_hangs == MAX_HANGS:
                return [facts(*one) for one in seen]
    return [facts(case, ending) for case, ending in seen]


def ending_of(case: Case, examine: Callable[[Case], None]) -> Broken | None:
    """How a case ends: None where it holds."""
    try:
        examine(case)
    except Broken as broken:
        return broken
    return None


def _says_something(ending: Broken) -> bool:
    """Whether it is about the case, and not about the time that the check has taken."""
    return ending.verdict.is_broken and (ending.outcomes is not None or ending.verdict is not Verdict.HANGS)


def neighbours(case: Case, world_sizes: Sequence[int]) -> Iterator[Case]:
    """The case with one thing changed: the number of ranks, the shape, dtype, values, memory layout or root."""
    case = dataclasses.replace(case, values=_telling(case.values))
    size = case.world_size
    for other in world_sizes:
        yield dataclasses.replace(case, world_size=other, src=min(case.src, other - 1))
    few: list[tuple[int, ...]] = [(1,), (), (0,)] if case.numel < size else []
    for shape in ((4 * size,), (4 * size + 1,), (2 * size, 3), (size + 1, 3), *few):
        yield dataclasses.replace(case, shape=shape)
    yield dataclasses.replace(case, dtype=torch.float32)
    yield dataclasses.replace(case, values="wide")
    yield dataclasses.replace(case, layout="contiguous")
    for root in (0, size - 1):
        yield dataclasses.replace(case, src=root)


def facts(case: Case, ending: Broken | None) -> dict[str, Any]:
    """A case and how it ended, for JSON."""
    _, view = lay_out(torch.zeros(case.shape), case.layout)
    told_by = ("pattern", "ranks") if case.values != "small" else ()
    data = ending.evidence.data if ending is not None and ending.evidence is not None else {}
    return {
        "world_size": case.world_size,
        "shape": list(case.shape),
        "dtype": str(case.dtype).removeprefix("torch."),
        "values": case.values,
        "is_contiguous": view.is_contiguous(),
        "src": case.src,
        "verdict": str(Verdict.HOLDS if ending is None else ending.verdict),
        **{name: data[name] for name in told_by if name in data},
    }


def _telling(values: str) -> str:
    """Large numbers in the place of small ones, which are right by chance now and then where all of them are wrong."""
    return "wide" if values == "small" else values


def told(cases: Sequence[dict[str, Any]]) -> str:
    """How many cases of each number of ranks are broken, in a sentence; empty where there is one number only."""
    by_size: dict[int, list[bool]] = {}
    for case in cases:
        by_size.setdefault(case["world_size"], []).append(case["verdict"] != Verdict.HOLDS)
    counts = ", ".join(f"{sum(broken)} of {len(broken)} with N = {n}" for n, broken in sorted(by_size.items()))
    return f"broken, of all cases tried: {counts}" if len(by_size) > 1 else ""


def _simplest(seen: Sequence[Seen]) -> Case:
    broken = [case for case, ending in seen if ending is not None]
    return min(broken, key=lambda case: (case.numel == 0, case.numel * case.world_size))
