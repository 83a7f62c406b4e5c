"""Cases from a table first, which leave nothing to chance, then drawn ones, which find what no table thought of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from conformance.checks import Judge
from fixtures.draws import Case


def sweep(
    judge: Judge,
    table: Sequence[Case],
    drawn: st.SearchStrategy[Case],
    examine: Callable[[Case], None],
    *,
    max_examples: int,
) -> None:
    """Examine every case of the table, then as many drawn ones; evidence of each kind is kept once."""
    kept = len(judge.evidence)
    for case in table:
        judge.examples_tried += 1
        examine(case)
    last = {item.message: dataclasses.replace(item, examples=0) for item in judge.evidence[kept:]}
    judge.evidence[kept:] = last.values()
    judge.forall(drawn, examine, max_examples=max_examples)
