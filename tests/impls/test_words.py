"""Counted nouns."""

from __future__ import annotations

import pytest

from impls.words import number_of


@pytest.mark.parametrize(
    ("number", "noun", "told"),
    [
        (1, "device", "1 device"),
        (0, "rank", "0 ranks"),
        (2, "rank", "2 ranks"),
        (1, "microbatch", "1 microbatch"),
        (3, "microbatch", "3 microbatches"),
        (4096, "device", "4,096 devices"),
    ],
)
def test_one_is_singular_and_all_else_plural(number: int, noun: str, told: str) -> None:
    assert number_of(number, noun) == told
