"""What tells the cases that are right from those that are wrong: the number of ranks, the shape, the dtype, ...

A case is a dictionary of facts; a question asks one thing of it. A question splits the cases where its answers for the
wrong ones are none of its answers for the right ones. Only one that is alone in this is told, or else the only pair of
them that holds together for all wrong cases and for no right one: two explanations are none.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A question, and its answers for the wrong and for the right cases, sorted."""

    question: str
    wrong: tuple[Any, ...]
    right: tuple[Any, ...]


def _numel(facts: Facts) -> int:
    return math.prod(facts["shape"])


def _is_empty(facts: Facts) -> bool:
    return _numel(facts) == 0


def _is_alone(facts: Facts) -> bool:
    return bool(facts["world_size"] == 1)


def _is_uneven(facts: Facts) -> bool:
    return _numel(facts) % int(facts["world_size"]) != 0


def _has_uneven_rows(facts: Facts) -> bool:
    return bool(facts["shape"]) and facts["shape"][0] % facts["world_size"] != 0


QUESTIONS: Mapping[str, Callable[[Facts], Hashable]] = {
    "size": lambda facts: facts["world_size"],
    "dims": lambda facts: len(facts["shape"]),
    "uneven": _is_uneven,
    "uneven_rows": _has_uneven_rows,
    "few": lambda facts: _numel(facts) < facts["world_size"],
    "empty": _is_empty,
    "dtype": lambda facts: facts["dtype"],
    "strided": lambda facts: not facts["is_contiguous"],
    "root": lambda facts: facts["src"] != 0,
    "rounding": lambda facts: facts["values"] == "real",
}


def split(wrong: Sequence[Facts], right: Sequence[Facts], questions: Sequence[str] = tuple(QUESTIONS)) -> list[Split]:
    """The only question that tells wrong from right, or the only two that do together; else nothing."""
    for is_idle in (_is_empty, _is_alone):  # nothing to sum, nobody to talk to: right whatever the fault is
        if not any(map(is_idle, wrong)):
            right = [facts for facts in right if not is_idle(facts)]
    if not wrong or not right:
        return []
    asked = {name: (_answers(name, wrong), _answers(name, right)) for name in questions}
    alone = [name for name, (bad, good) in asked.items() if not set(bad) & set(good)]
    if len(alone) == 1:
        return [_split(alone[0], *asked[alone[0]])]
    if alone:
        return []
    pairs = [pair for pair in itertools.combinations(questions, 2) if _holds_together(pair, asked)]
    return [_split(name, *asked[name]) for name in pairs[0]] if len(pairs) == 1 else []


def _holds_together(pair: Sequence[str], asked: Mapping[str, tuple[list[Any], list[Any]]]) -> bool:
    """Whether both answers of each wrong case are those of wrong cases only, and both are needed."""
    bad = [set(asked[name][0]) for name in pair]
    met = [tuple(answer in answers for answer, answers in zip(both, bad, strict=True)) for both in _good(pair, asked)]
    return (True, True) not in met and (True, False) in met and (False, True) in met


def _good(pair: Sequence[str], asked: Mapping[str, tuple[list[Any], list[Any]]]) -> list[tuple[Any, ...]]:
    return list(zip(*(asked[name][1] for name in pair), strict=True))


def _answers(name: str, cases: Sequence[Facts]) -> list[Any]:
    return [QUESTIONS[name](facts) for facts in cases]


def _split(name: str, bad: Sequence[Any], good: Sequence[Any]) -> Split:
    return Split(question=name, wrong=tuple(sorted(set(bad))), right=tuple(sorted(set(good) - set(bad))))
