"""Every case can fail: where the fault is not, it is not seen, and what does not cure is no cure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fixtures.faults import missing_broadcast, pipeline_send_send
from fixtures.faults.case import Case, cases_of
from fixtures.faults.gallery import find
from fixtures.faults.scenario import Run
from fixtures.faults.trying import runs_in
from fixtures.world.pool import WorldPool

CASES = [
    pytest.param(case, id=f"{name}-{number}")
    for name, scenario in find().items()
    for number, case in enumerate(cases_of(scenario.reproduce))
]


@pytest.fixture
def run(worlds: WorldPool) -> Run:
    return runs_in(worlds)


@pytest.mark.parametrize("case", CASES)
def test_neither_fault_nor_diagnosis_is_seen_in_the_cured_program(run: Run, case: Case) -> None:
    steps = [step for step in case.exchanged(faulty=True)(run) if step.part != "cure"]
    assert [(step.part, step.seen) for step in steps] == [("fault", False), ("diagnosis", False)]


@pytest.mark.parametrize("case", CASES)
def test_no_cure_is_seen_in_the_faulty_program(run: Run, case: Case) -> None:
    assert not any(step.seen for step in case.exchanged(cured=True)(run) if step.part == "cure")


@pytest.mark.parametrize("case", CASES)
def test_what_was_not_seen_is_told(run: Run, case: Case) -> None:
    for step in case.exchanged(faulty=True, cured=True)(run):
        assert step.expected
        assert step.observed
        assert step.line


def _replaced(run: Run, program: Callable[..., Any], other: Callable[..., Any], **changes: Any) -> Run:
    def replaced(asked: Callable[..., Any], world_size: int, /, *args: Any, **kwargs: Any) -> Any:
        if asked is program:
            return run(other, world_size, *args, **{**kwargs, **changes})
        return run(asked, world_size, *args, **kwargs)

    return replaced


def test_ranks_that_were_brought_together_show_no_missing_broadcast(run: Run) -> None:
    together = _replaced(run, missing_broadcast.train, missing_broadcast.train, cured=True)
    fault, diagnosis, *_ = missing_broadcast.SCENARIO.reproduce(together)
    assert (fault.seen, diagnosis.seen) == (False, False)


def test_an_exchange_that_completes_shows_no_lock(run: Run) -> None:
    completes = _replaced(run, pipeline_send_send.send_first, pipeline_send_send.cured_exchange)
    fault, diagnosis, *_ = pipeline_send_send.SCENARIO.reproduce(completes)
    assert (fault.seen, diagnosis.seen) == (False, False)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8])
def test_ranks_that_all_send_first_never_complete(size: int) -> None:
    send_first = [[("send", (rank + 1) % size), ("recv", (rank - 1) % size)] for rank in range(size)]
    assert not pipeline_send_send.completes(send_first)
    assert pipeline_send_send.completes(pipeline_send_send.by_parity(size, 1))
