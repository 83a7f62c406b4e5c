"""Cases from a table first, which leave nothing to chance, then drawn ones, which find what no table thought of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from conformance.checks import Judge
from conformance.collectives.survey import Seen, ending_of, survey, told
from conformance.judge import Broken
from fixtures.draws import Case


def sweep(
    judge: Judge,
    table: Sequence[Case],
    drawn: st.SearchStrategy[Case],
    examine: Callable[[Case], None],
    *,
    max_examples: int,
) -> None:
    """Examine every case of the table, then as many drawn ones; evidence of each kind is kept once.

    The first broken case ends the check; the others are then looked at for what they have in common.
    """
    seen: list[Seen] = []

    def look(case: Case) -> None:
        ending = ending_of(case, examine)
        seen.append((case, ending))
        if ending is not None:
            raise ending

    try:
        _sweep(judge, table, drawn, look, max_examples)
    except Broken as broken:
        if not broken.verdict.is_broken or not judge.shrink:
            raise
        judge.surveyed = survey(seen, table, examine)
        message = "\n".join(filter(None, [broken.message, told(judge.surveyed)]))
        raise Broken(broken.verdict, message, evidence=broken.evidence, outcomes=broken.outcomes) from None


def _sweep(
    judge: Judge,
    table: Sequence[Case],
    drawn: st.SearchStrategy[Case],
    look: Callable[[Case], None],
    max_examples: int,
) -> None:
    kept = len(judge.evidence)
    for case in table:
        judge.examples_tried += 1
        look(case)
    last = {item.message: dataclasses.replace(item, examples=0) for item in judge.evidence[kept:]}
    judge.evidence[kept:] = last.values()
    judge.forall(drawn, look, max_examples=max_examples)
