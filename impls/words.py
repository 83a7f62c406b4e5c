"""How many of something, in words: ``1 rank``, ``2 ranks``, ``4,096 devices``."""

from __future__ import annotations

_PLURALS = {"microbatch": "microbatches"}


def number_of(number: int, noun: str) -> str:
    """The number with the noun, which is given in the singular."""
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, f'{noun}s')}"
