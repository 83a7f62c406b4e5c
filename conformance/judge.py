"""Where a check puts its evidence, and how it ends early: every ending is a verdict with expected and observed.

A Judge knows nothing of ranks; it is told what was expected and what was seen, and by which witness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from conformance import expect as comparisons
from conformance.verdict import Evidence, ScenarioStory, Verdict, Witness
from fixtures.world.outcome import Outcomes

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class Broken(Exception):
    """Ends a check with a verdict other than ``holds``."""

    def __init__(
        self,
        verdict: Verdict,
        message: str,
        *,
        evidence: Evidence | None = None,
        outcomes: Outcomes | None = None,
    ) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.message = message
        self.evidence = evidence
        self.outcomes = outcomes


class Judge:
    """Collects the evidence of one check. A check that ends without any is the suite's own error.

    ``seed`` is that of ``--hypothesis-seed`` or the fixed one; ``shrink`` is False where only "broken or not" matters.
    """

    def __init__(self, *, seed: int = 0, shrink: bool = True) -> None:
        self.evidence: list[Evidence] = []
        self.examples_tried = 0  # by forall, also those of a check that fails
        self.story: ScenarioStory | None = None
        self.shown: Outcomes | None = None
        self.surveyed: list[dict[str, Any]] = []  # of a check that fails: what became of its other cases
        self.seed = seed
        self.shrink = shrink

    def expect(
        self,
        observed: object,
        expected: object,
        *,
        witness: Witness = Witness.VALUE,
        unit: str = "",
        message: str = "",
        examples: int = 1,
        data: Mapping[str, Any] | None = None,
        outcomes: Outcomes | None = None,
    ) -> None:
        """Hold when equal (tensors bit for bit, lists item by item), else raise Broken(VIOLATED) that names where."""
        comparison = comparisons.same(observed, expected)
        self.that(
            comparison, witness=witness, unit=unit, message=message, examples=examples, data=data, outcomes=outcomes
        )

    def at_most(
        self,
        observed: float,
        bound: float,
        *,
        witness: Witness = Witness.VALUE,
        unit: str = "",
        message: str = "",
        examples: int = 1,
        data: Mapping[str, Any] | None = None,
        outcomes: Outcomes | None = None,
    ) -> None:
        """Hold when ``observed <= bound``; NaN does not hold."""
        comparison = comparisons.at_most(observed, bound)
        self.that(
            comparison, witness=witness, unit=unit, message=message, examples=examples, data=data, outcomes=outcomes
        )

    def that(
        self,
        comparison: comparisons.Comparison,
        *,
        witness: Witness = Witness.VALUE,
        unit: str = "",
        message: str = "",
        examples: int = 1,
        data: Mapping[str, Any] | None = None,
        outcomes: Outcomes | None = None,
    ) -> None:
        """Hold or break by a comparison of ``conformance.expect``; ``message`` says what is compared."""
        said = ": ".join(part for part in (message, comparison.message) if part)
        data = {**(data or {}), **({"pattern": dict(comparison.pattern)} if comparison.pattern else {})}
        evidence = _evidence(comparison.expected, comparison.observed, witness, unit, said, examples, data)
        if not comparison.matches:
            raise Broken(Verdict.VIOLATED, said or _odd(evidence), evidence=evidence, outcomes=outcomes)
        self.evidence.append(evidence)

    def holds(
        self,
        *,
        expected: object,
        observed: object,
        witness: Witness,
        unit: str = "",
        message: str = "",
        examples: int = 1,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Put evidence down that the check itself found in order."""
        self.evidence.append(_evidence(expected, observed, witness, unit, message, examples, data))

    def violated(
        self,
        message: str,
        *,
        expected: object = "",
        observed: object = "",
        witness: Witness = Witness.VALUE,
        unit: str = "",
        data: Mapping[str, Any] | None = None,
        outcomes: Outcomes | None = None,
    ) -> NoReturn:
        """End the check: the claim was seen broken."""
        evidence = _evidence(expected, observed, witness, unit, message, 1, data)
        raise Broken(Verdict.VIOLATED, message, evidence=evidence, outcomes=outcomes)

    def hangs(self, message: str, *, outcomes: Outcomes | None = None) -> NoReturn:
        """End the check: ranks were seen waiting for what cannot come."""
        raise Broken(Verdict.HANGS, message, outcomes=outcomes)

    def crashes(self, message: str, *, outcomes: Outcomes | None = None) -> NoReturn:
        """End the check: a rank raised, exited or was killed."""
        raise Broken(Verdict.CRASHES, message, outcomes=outcomes)

    def refuses(self, reason: str) -> NoReturn:
        """End the check: declared unsupported, and refused cleanly on every rank."""
        raise Broken(Verdict.REFUSES, reason)

    def inconclusive(self, reason: str) -> NoReturn:
        """End the check: a witness that it needs is missing on this machine."""
        raise Broken(Verdict.INCONCLUSIVE, reason)

    def not_provided(self, reason: str) -> NoReturn:
        """End the check: the implementation does not do what this claim is about."""
        raise Broken(Verdict.NOT_PROVIDED, reason)

    def tell(self, story: ScenarioStory) -> None:
        """Hand over the story of a failure mode; its verdict and rerun command are filled in from the check."""
        self.story = story

    def timeline(self, outcomes: Outcomes) -> None:
        """Have the report draw the operations and marks of these ranks, also when the claim holds."""
        self.shown = outcomes

    def forall(
        self,
        strategy: SearchStrategy[Any],
        body: Callable[[Any], None],
        *,
        max_examples: int | None = None,
    ) -> None:
        """Call ``body(case)`` for drawn cases; a case that breaks is shrunk, within bounds, and named.

        Evidence that the body puts down is kept once, with the number of examples that stand behind it.
        ``max_examples`` is for the default profile; ``--hypothesis-profile`` multiplies or divides it.
        """
        from conformance.forall import search

        search(self, strategy, body, max_examples=max_examples)


def _evidence(
    expected: object,
    observed: object,
    witness: Witness,
    unit: str,
    message: str,
    examples: int,
    data: Mapping[str, Any] | None,
) -> Evidence:
    texts = [comparisons.show(expected), comparisons.show(observed)]
    if any(text and not comparisons.ends_in_a_figure(text) for text in texts):  # no place for a unit behind it
        texts, unit = [comparisons.with_unit(text, unit) for text in texts], ""
    return Evidence(
        expected=texts[0],
        observed=texts[1],
        witness=witness,
        unit=unit,
        message=message,
        examples=examples,
        data=dict(data or {}),
    )


def _odd(evidence: Evidence) -> str:
    unit = f" {evidence.unit}" if evidence.unit else ""
    return f"observed {evidence.observed}{unit}, but should be {evidence.expected}{unit}"


def merged(evidence: Sequence[Evidence], examples_tried: int) -> Evidence | None:
    """One evidence for all that a check put down: the last figures, every witness's message, all data."""
    if not evidence:
        return None
    data: dict[str, Any] = {}
    for item in evidence:
        data.update(item.data)
    last = evidence[-1]
    messages = dict.fromkeys(item.message for item in evidence if item.message)
    return Evidence(
        expected=last.expected,
        observed=last.observed,
        witness=last.witness,
        unit=last.unit,
        message="; ".join(messages),
        examples=sum(item.examples for item in evidence) + examples_tried,
        data=data,
    )
