"""The five bubble functions: the right share of total time, and the wrong ones that people return, with their names.

P ranks, M microbatches; F = I = W, pairs as long as their parts, no latency.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from conformance.pipeline.judged import Asked, Exact

Share = Callable[[int, int], Fraction]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """One function: the share as text and as value, which P and M it takes, its own wrong forms by what they are."""

    text: str
    share: Share
    rule: str
    sizes: tuple[tuple[int, int], ...]
    refused: tuple[tuple[int, int], ...]
    wrong: Mapping[str, Share] = dataclasses.field(default_factory=dict)


def _one_f_one_b(p: int, m: int) -> Fraction:
    return Fraction(p - 1, m + p - 1)


def _zero_bubble(p: int, m: int) -> Fraction:
    return Fraction(p - 1, 3 * m + p - 1)


def _dualpipe(p: int, m: int) -> Fraction:
    return Fraction(p - 2, 3 * m + p - 2)


def _dualpipe_taught(p: int, m: int) -> Fraction:
    return Fraction((p - 1) // 2, 3 * m + p - 1)


_NONE = ((0, 4), (4, 0), (-1, 4), (4, -2))
_ANY = ((1, 1), (1, 8), (2, 2), (2, 3), (3, 3), (3, 8), (4, 8), (4, 24), (4, 64), (5, 7), (8, 16), (10, 30), (16, 64))
_EVEN = ((2, 4), (2, 6), (4, 8), (4, 10), (4, 64), (6, 14), (8, 16), (8, 64))
_V = ((1, 2), (1, 5), (2, 4), (2, 5), (3, 6), (4, 8), (4, 11), (4, 64), (5, 12), (8, 16))

BUBBLES: Mapping[str, Bubble] = {
    **dict.fromkeys(
        ("bubble_fraction", "bubble_1f1b"),
        Bubble(
            text="(P-1)/(M+P-1)",
            share=_one_f_one_b,
            rule="P >= 1 and M >= 1",
            sizes=(*_ANY, (4, 2), (8, 3)),
            refused=_NONE,
            wrong={"P in place of P-1, P/(M+P)": lambda p, m: Fraction(p, m + p)},
        ),
    ),
    "bubble_zero_bubble": Bubble(
        text="(P-1)/(3M+P-1)",
        share=_zero_bubble,
        rule="P >= 1 and M >= P",
        sizes=_ANY,
        refused=(*_NONE, (4, 3)),
        wrong={
            "the teaching approximation (P-1)/(3M+2(P-1)), which counts the warm-up twice": lambda p, m: Fraction(
                p - 1, 3 * m + 2 * (p - 1)
            ),
            "that of 1F1B, (P-1)/(M+P-1): no W fills a gap": _one_f_one_b,
            "none at all, as ZB-H2 has it without a barrier": lambda p, m: Fraction(0),
        },
    ),
    "bubble_dualpipe": Bubble(
        text="(P-2)/(3M+P-2)",
        share=_dualpipe,
        rule="P even, M even and M >= 2P",
        sizes=_EVEN,
        refused=(*_NONE, (3, 8), (4, 9), (4, 6)),
        wrong={
            "the teaching approximation floor((P-1)/2)/(3M+P-1), about half the true value": _dualpipe_taught,
            "that of DualPipeV, (P-1)/(3M+P-1)": _zero_bubble,
        },
    ),
    "bubble_dualpipev": Bubble(
        text="(P-1)/(3M+P-1)",
        share=_zero_bubble,
        rule="P >= 1 and M >= 2P",
        sizes=_V,
        refused=(*_NONE, (4, 7)),
        wrong={
            "the teaching approximation, 1.2 times floor((P-1)/2)/(3M+P-1)": lambda p, m: (
                Fraction(6, 5) * _dualpipe_taught(p, m)
            ),
            "1.2 times that of DualPipe; at equal P the idle times are as (P-1) to (P-2)": lambda p, m: (
                Fraction(6, 5) * _dualpipe(p, m)
            ),
            "that of DualPipe, (P-2)/(3M+P-2)": _dualpipe,
            "that of P stages on half as many ranks, P is the number of ranks": lambda p, m: _zero_bubble(p // 2, m),
        },
    ),
}


def likely(bubble: Bubble, asked: Sequence[Asked], found: Sequence[Exact]) -> str:
    """What the numbers are if not the right ones, where one explanation fits them all; else nothing."""
    cases = [((one.num_ranks, one.num_microbatches), number) for one, number in zip(asked, found, strict=True)]
    for text, share in _explanations(bubble):
        values = [(_value(share, *size), number) for size, number in cases]
        if all(value is not None and number.is_near(value) for value, number in values):
            return text
    off = max(abs(number.value - bubble.share(*size)) for size, number in cases)
    digits = next((digits for digits in range(8, 1, -1) if off <= Fraction(51, 100 * 10**digits)), None)
    return f"the right share, rounded to {digits} digits" if digits else ""


def _explanations(bubble: Bubble) -> Iterator[tuple[str, Share]]:
    right = bubble.share
    yield "a percentage: a fraction of 1 is expected", lambda p, m: 100 * right(p, m)
    yield (
        "the share of the ideal time, and that of the total time is expected",
        lambda p, m: right(p, m) / (1 - right(p, m)),
    )
    yield "the share for P and M swapped: the number of ranks comes first", lambda p, m: right(m, p)
    yield "the share in which ranks work: that in which they idle is expected", lambda p, m: 1 - right(p, m)
    yield from bubble.wrong.items()


def _value(share: Share, p: int, m: int) -> Fraction | None:
    try:
        return share(p, m)
    except ZeroDivisionError:
        return None
