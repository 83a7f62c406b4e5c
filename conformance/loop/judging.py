"""One piece of evidence for many comparisons: the first that fails ends the check, else the least good one is shown."""

from __future__ import annotations

from collections.abc import Iterable

from conformance import expect
from conformance.expect import Comparison
from conformance.judge import Judge
from conformance.loop.programs import Values
from conformance.verdict import Witness

Named = tuple[str, Comparison]  # where (a rank, a step), and what was found there


def judge_all(judge: Judge, found: Iterable[Named], message: str, *, witness: Witness = Witness.VALUE) -> None:
    """Every comparison must match; ``message`` says what they are about."""
    worst: Comparison | None = None
    count = 0
    for where, comparison in found:
        if not comparison.matches:
            judge.that(comparison, witness=witness, message=f"{message}, {where}")
        if worst is None or (comparison.error or 0.0) > (worst.error or 0.0):
            worst = comparison
        count += 1
    assert worst is not None, "nothing was compared"
    judge.holds(expected=worst.expected, observed=worst.observed, witness=witness, message=message, examples=count)


def gradients_as(observed: Values, expected: Values) -> Comparison:
    """Equal numbers under equal names; where no rank has a gradient, None and zeros are both right, and -0.0 is 0.0."""
    return expect.same(_comparable(observed, expected), _comparable(expected, expected))


def _comparable(values: Values, expected: Values) -> Values:
    found: Values = {}
    for name, value in values.items():
        nothing = name in expected and expected[name] is None and value is not None and not value.any()
        found[name] = None if value is None or nothing else value + 0.0
    return found
