"""Every failure mode of ``fixtures/faults``: its fault is shown, a witness diagnoses it, and its cure is asserted."""

from __future__ import annotations

import pytest

from conformance import scenarios
from conformance.checks import Judge, Subject, claim, scenario
from conformance.verdict import ScenarioStory, Text, Verdict, Witness
from fixtures.faults.scenario import Scenario, Step, Words

PARTS = {"fault", "diagnosis", "cure"}


@pytest.fixture
def asked_for(request: pytest.FixtureRequest) -> str | None:
    """The scenario of --scenario."""
    chosen: str | None = request.config.getoption("--scenario")
    return chosen


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(found, id=name, marks=[claim(found.claim), scenario(name)])
        for name, found in scenarios.find().items()
    ],
)
def test_the_fault_is_shown_diagnosed_and_cured(
    subject: Subject, judge: Judge, failure: Scenario, asked_for: str | None
) -> None:
    provided = subject.has(failure.cure_name)
    if not provided and asked_for != failure.id:
        judge.not_provided(
            f"{subject.name} provides no {failure.cure_name}; with the reference's the scenario is told by: "
            f"pytest --impl={subject.description.spec} --scenario={failure.id} --explain"
        )
    whose = "" if provided else f"(by the reference's {failure.cure_name}, as {subject.name} provides none) "
    steps: list[Step] = []
    for step in failure.reproduce(subject.observe):
        steps.append(step)
        judge.tell(_story(failure, steps, whose))
        if not step.seen:
            judge.violated(
                f"{step.part} of {failure.id}: observed {step.observed}, but should be {step.expected}",
                expected=step.expected,
                observed=step.observed,
                witness=Witness(step.witness),
            )
        judge.holds(expected=step.expected, observed=step.observed, witness=Witness(step.witness), message=step.line)
    assert {step.part for step in steps} >= PARTS, "a scenario has to show, diagnose and cure"


def _story(failure: Scenario, steps: list[Step], whose: str) -> ScenarioStory:
    return ScenarioStory(
        id=failure.id,
        claim=failure.claim,
        title=_text(failure.title),
        symptom=_text(failure.symptom),
        diagnosis=_text(failure.cause),
        cure=_text(failure.cure),
        verdict=Verdict.HOLDS,  # filled in from the check's own verdict
        evidence=tuple(f"{step.part}: {whose if step.part == 'cure' else ''}{step.line}" for step in steps),
    )


def _text(words: Words) -> Text:
    return Text(en=words.en, fa=words.fa)
