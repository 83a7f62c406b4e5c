"""Every failure mode of ``fixtures/faults``: its fault is shown, a witness diagnoses it, and its cure is asserted.

The entries of the cheatsheet have a claim, and examine the cure of whoever provides one. Those from public reports have
none: they are the suite's own, and count for no implementation.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance import scenarios
from conformance.checks import Judge, Subject, claim, scenario
from conformance.trouble.telling import PARTS, story
from conformance.verdict import ScenarioStory, Witness
from fixtures.faults.scenario import Scenario, Step
from fixtures.faults.trying import runs_in
from fixtures.world.pool import WorldPool

ENTRIES = {name: found for name, found in scenarios.find().items() if found.claim}
REPORTED = {name: found for name, found in scenarios.find().items() if not found.claim}


@pytest.fixture
def asked_for(request: pytest.FixtureRequest) -> str | None:
    """The scenario of --scenario."""
    chosen: str | None = request.config.getoption("--scenario")
    return chosen


@pytest.mark.parametrize(
    "failure",
    [pytest.param(found, id=name, marks=[claim(found.claim), scenario(name)]) for name, found in ENTRIES.items()],
)
def test_the_fault_is_shown_diagnosed_and_cured(
    subject: Subject, judge: Judge, failure: Scenario, asked_for: str | None
) -> None:
    provided = subject.has(failure.cure_name)
    if not provided and asked_for not in (failure.id, scenarios.ALL):
        judge.not_provided(
            f"{subject.name} provides no {failure.cure_name}; with the reference's the scenario is told by: "
            f"pytest --impl={subject.description.spec} --scenario={failure.id} --explain"
        )
    whose = "" if provided else f"(by the reference's {failure.cure_name}, as {subject.name} provides none) "
    steps: list[Step] = []
    for step in failure.reproduce(subject.observe):
        steps.append(step)
        judge.tell(story(failure, steps, whose))
        if not step.seen:
            judge.violated(
                f"{step.part} of {failure.id}: observed {step.observed}, but should be {step.expected}",
                expected=step.expected,
                observed=step.observed,
                witness=Witness(step.witness),
            )
        judge.holds(
            expected=step.expected,
            observed=step.observed,
            witness=Witness(step.witness),
            message=step.line,
            data=step.data,
        )
    assert {step.part for step in steps} >= PARTS, "a scenario has to show, diagnose and cure"


@pytest.mark.parametrize(
    "failure", [pytest.param(found, id=name, marks=scenario(name)) for name, found in REPORTED.items()]
)
def test_what_was_reported_is_shown_diagnosed_and_cured(
    worlds: WorldPool, tell: Callable[[ScenarioStory], None], failure: Scenario
) -> None:
    steps: list[Step] = []
    for step in failure.reproduce(runs_in(worlds)):
        steps.append(step)
        tell(story(failure, steps, rerun=f"pytest --scenario={failure.id} --explain"))
        assert step.seen, f"{step.part} of {failure.id}: observed {step.observed}, but should be {step.expected}"
    assert {step.part for step in steps} >= PARTS, "a scenario has to show, diagnose and cure"
