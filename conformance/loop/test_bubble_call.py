"""bubble_fraction(num_stages, num_microbatches), called with the figures that people know by heart."""

from __future__ import annotations

from fractions import Fraction

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.judged import Asked, legal_bubbles
from conformance.verdict import Witness

# (N, M): (N-1)/(M+N-1), where swapped arguments, a share of the ideal time and a percentage are all something else.
SHARES = {
    (1, 8): Fraction(0),
    (4, 8): Fraction(3, 11),
    (4, 64): Fraction(3, 67),
    (8, 4): Fraction(7, 11),
    (3, 1): Fraction(2, 3),
}


@claim("calls.bubble-fraction", provides=["bubble_fraction"])
def test_bubble_fraction_is_the_idle_share_of_the_total_time(subject: Subject, judge: Judge) -> None:
    asked = [Asked("bubble_fraction", *sizes) for sizes in SHARES]
    found = legal_bubbles(subject, judge, asked)
    for (sizes, share), number in zip(SHARES.items(), found, strict=True):
        if not number.is_near(share):
            judge.violated(
                f"bubble_fraction{sizes} returns {float(number.value):.6g}",
                expected=f"{share} = {float(share):.6g}",
                observed=f"{float(number.value):.6g}",
                witness=Witness.MODEL,
            )
    judge.holds(
        expected="(N-1)/(M+N-1)",
        observed=f"{float(found[1].value):.6g} for N = 4, M = 8",
        witness=Witness.MODEL,
        message=f"for (N, M) in {list(SHARES)}",
        examples=len(SHARES),
    )
