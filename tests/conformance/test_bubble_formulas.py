"""Wrong bubble shares are recognised by the mistake that gives them; right ones are near, whatever type they have."""

from __future__ import annotations

from fractions import Fraction

import pytest

from conformance.pipeline.bubble_formulas import BUBBLES, Bubble, Share, likely
from conformance.pipeline.judged import Asked, Exact
from impls.reference.pipeline import bubbles

SLACK = Fraction(1, 10**9)


def _guess(name: str, share: Share) -> str:
    asked = [Asked(name, *size) for size in BUBBLES[name].sizes]
    return likely(BUBBLES[name], asked, [Exact(Fraction(float(share(*size))), SLACK) for size in BUBBLES[name].sizes])


@pytest.mark.parametrize("name", BUBBLES)
def test_closed_forms_are_those_of_the_reference(name: str) -> None:
    for size in BUBBLES[name].sizes:
        assert Exact(Fraction(getattr(bubbles, name)(*size)), SLACK).is_near(BUBBLES[name].share(*size))


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, bubble in BUBBLES.items() for text in bubble.wrong])
def test_mistakes_of_each_function_are_told_apart(name: str, text: str) -> None:
    assert _guess(name, BUBBLES[name].wrong[text]) == text


@pytest.mark.parametrize("name", BUBBLES)
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda bubble: lambda p, m: 100 * bubble.share(p, m), "a percentage"),
        (lambda bubble: lambda p, m: bubble.share(p, m) / (1 - bubble.share(p, m)), "the share of the ideal time"),
        (lambda bubble: lambda p, m: bubble.share(m, p), "P and M swapped"),
        (lambda bubble: lambda p, m: 1 - bubble.share(p, m), "in which ranks work"),
        (lambda bubble: lambda p, m: Fraction(round(float(bubble.share(p, m)), 4)), "rounded to 4 digits"),
    ],
)
def test_common_mistakes_are_named(name: str, wrong: object, told: str) -> None:
    make: object = wrong
    assert callable(make)
    assert told in _guess(name, make(BUBBLES[name]))


def test_what_no_mistake_explains_is_not_explained() -> None:
    bubble: Bubble = BUBBLES["bubble_1f1b"]
    assert _guess("bubble_1f1b", lambda p, m: bubble.share(p, m) + Fraction(1, 7)) == ""
