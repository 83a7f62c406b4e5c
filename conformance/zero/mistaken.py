"""What usual faults make of a plan, in one process: values that are exactly theirs name the fault.

A fault is named only where every wrong run is what this fault alone makes of it, step by step on every rank, and where
that is far from right.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from conformance.zero import single
from conformance.zero.plan import Plan
from conformance.zero.relied_programs import Relied
from conformance.zero.single import Run

FAR = 4  # in bounds: how much farther from the right values than from the fault's, at least
_HALVES = (torch.float16, torch.bfloat16)
Report = Mapping[str, Any]


def faults_of(plan: Plan, run: Run, bound: float, ranks: Sequence[Report], turn: int) -> set[str] | None:
    """The faults that explain the ranks' parameters; None where these are right. `turn`: the step before which state
    is loaded, 0 for none.
    """
    if plan.dtype in _HALVES or plan.extras or plan.on_shards or plan.optimizer not in single.RULES:
        return set()
    if _is_near(run, bound, ranks):
        return None
    return {
        name
        for name, make in FAULTS.items()
        if any(_is_near(wrong, bound, ranks) for wrong in make(plan, turn) if _is_far(wrong, run, bound))
    }


def _is_far(wrong: Run, right: Run, bound: float) -> bool:
    return single.apart(wrong.steps[-1], right.steps[-1]) > FAR * bound


def _is_near(run: Run, bound: float, ranks: Sequence[Report]) -> bool:
    """Whether the ranks' parameters are those of a run, in every step in which they are known."""
    known = len(ranks[0]["steps"])
    for steps in (report["steps"] for report in ranks):
        for found, wanted in zip(steps, run.steps[-known:], strict=True):
            if found is not None and (found.keys() != wanted.keys() or not single.apart(found, wanted) <= bound):
                return False
    return True


def _with_first_rate(plan: Plan, turn: int) -> list[Run]:
    """Of a schedule by hand: the rate of the constructor throughout, or that of the first step."""
    if plan.rates is None:
        return []
    first = [plan.rates[0]] * len(plan.rates)
    return [single.train(dataclasses.replace(plan, rates=rates)) for rates in (None, first)]


def _with_first_options(plan: Plan, turn: int) -> list[Run]:
    """Of options that are written into groups in the course of it."""
    if not isinstance(plan, Relied) or not plan.written:
        return []
    return [single.train(dataclasses.replace(plan, written=[]))]


def _with_one_group(plan: Plan, turn: int) -> list[Run]:
    """Of several groups: one group's options for all parameters, or the constructor's."""
    if plan.groups is None or any(first for _, _, first in plan.groups):
        return []
    merged: list[list[list[Any]] | None] = [None, *([["", options, 0]] for _, options, _ in plan.groups)]
    return [single.train(dataclasses.replace(plan, groups=groups)) for groups in merged]


def _without_loading(plan: Plan, turn: int) -> list[Run]:
    """Of a run that is saved and loaded half way: state is empty again."""
    return [single.train(plan, forgets=[turn])] if turn else []


def _without_state(plan: Plan, turn: int) -> list[Run]:
    return [single.train(plan, forgets=range(len(plan.data)))]


def _summed(plan: Plan, turn: int) -> list[Run]:
    return [single.train(plan, factor=float(len(plan.data[0])))]


def _divided_twice(plan: Plan, turn: int) -> list[Run]:
    return [single.train(plan, factor=1 / len(plan.data[0]))]


FAULTS: Mapping[str, Callable[[Plan, int], list[Run]]] = {
    "rate_ignored": _with_first_rate,
    "options_ignored": _with_first_options,
    "one_groups_options": _with_one_group,
    "state_lost": _without_loading,
    "state_forgotten": _without_state,
    "gradients_summed": _summed,
    "gradients_divided_twice": _divided_twice,
}
