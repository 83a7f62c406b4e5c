"""All eight schedules and the simulator agree exactly with another simulator's figures, down to the last fraction."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.counts import peak_activations
from impls.reference.pipeline.names import SCHEDULES
from impls.reference.pipeline.simulate import simulate

# 0.1 is one tenth here, not the float next to it.
ORACLE = json.loads((Path(__file__).parent / "oracle.json").read_text(encoding="utf-8"), parse_float=Fraction)
LEGAL = [group for group in ORACLE["groups"] if group.get("legal", True)]
ILLEGAL = [group for group in ORACLE["groups"] if not group.get("legal", True)]


def _name(group: dict[str, Any]) -> str:
    return f"{group['schedule']}-N{group['N']}-M{group['M']}"


def _of_all(figure: Any, num_ranks: int) -> list[Any]:
    return figure if isinstance(figure, list) else [figure] * num_ranks


def test_every_schedule_is_in_it_and_732_rows() -> None:
    rows = Counter(group["schedule"] for group in LEGAL for _ in group["cases"])
    assert set(rows) == set(SCHEDULES)
    assert rows.total() + len(ILLEGAL) == 732


@pytest.mark.parametrize("group", LEGAL, ids=_name)
def test_times_and_bubbles(group: dict[str, Any]) -> None:
    schedule = SCHEDULES[group["schedule"]](group["N"], group["M"])
    for values in group["cases"]:
        case = dict(zip(ORACLE["columns"], values, strict=True))
        costs = Costs(forward=case["F"], input=case["I"], weight=case["W"], pair=case["FB"], latency=case["c"])
        timeline = simulate(schedule, costs.of_rank(schedule))
        found = (timeline.makespan, timeline.bubble(), max(timeline.bubble(barrier=False)))
        assert found == (case["makespan"], _of_all(case["bubble"], group["N"]), case["span"]), case
        assert all(type(figure) is Fraction for figure in (found[0], *found[1]))


@pytest.mark.parametrize("group", LEGAL, ids=_name)
def test_peak_activations(group: dict[str, Any]) -> None:
    schedule = SCHEDULES[group["schedule"]](group["N"], group["M"])
    assert peak_activations(schedule) == _of_all(group["peak"], group["N"])


@pytest.mark.parametrize("group", ILLEGAL, ids=_name)
def test_numbers_that_a_schedule_does_not_allow(group: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"needs .*M >= .*got N = {group['N']} ranks and M = {group['M']} "):
        SCHEDULES[group["schedule"]](group["N"], group["M"])
