"""Every failure mode of ``fixtures/faults``: its fault is shown, a witness diagnoses it, and its cure is asserted."""

from __future__ import annotations

import pytest

from conformance import scenarios
from conformance.checks import Judge, Subject, claim, scenario
from conformance.verdict import ScenarioStory, Text, Verdict, Witness
from fixtures.faults.scenario import Scenario, Step, Words

PARTS = {"fault", "diagnosis", "cure"}


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(found, id=name, marks=[claim(found.claim), scenario(name)])
        for name, found in scenarios.find().items()
    ],
)
def test_the_fault_is_shown_diagnosed_and_cured(subject: Subject, judge: Judge, failure: Scenario) -> None:
    steps: list[Step] = []
    for step in failure.reproduce(subject.observe):
        steps.append(step)
        judge.tell(_story(failure, steps))
        if not step.seen:
            judge.violated(
                f"{step.part} of {failure.id}: observed {step.observed}, but should be {step.expected}",
                expected=step.expected,
                observed=step.observed,
                witness=Witness(step.witness),
            )
        judge.holds(expected=step.expected, observed=step.observed, witness=Witness(step.witness), message=step.line)
    assert {step.part for step in steps} >= PARTS, "a scenario has to show, diagnose and cure"


def _story(failure: Scenario, steps: list[Step]) -> ScenarioStory:
    return ScenarioStory(
        id=failure.id,
        claim=failure.claim,
        title=_text(failure.title),
        symptom=_text(failure.symptom),
        diagnosis=_text(failure.cause),
        cure=_text(failure.cure),
        verdict=Verdict.HOLDS,  # filled in from the check's own verdict
        evidence=tuple(f"{step.part}: {step.line}" for step in steps),
    )


def _text(words: Words) -> Text:
    return Text(en=words.en, fa=words.fa)
