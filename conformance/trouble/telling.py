"""From the steps of a reproduction to the story that the terminal and the report tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from conformance.verdict import ScenarioStory, Text, Verdict, Waiting
from fixtures.faults.scenario import Scenario, Step, Words

PARTS = {"fault", "diagnosis", "cure"}


def story(failure: Scenario, steps: Sequence[Step], whose_cure: str = "", rerun: str = "") -> ScenarioStory:
    """The story so far; its verdict is filled in from how the check ends."""
    return ScenarioStory(
        id=failure.id,
        sign=failure.sign.value,
        claim=failure.claim,
        title=_text(failure.title),
        symptom=_text(failure.symptom),
        diagnosis=_text(failure.cause),
        cure=_text(failure.cure),
        verdict=Verdict.HOLDS,
        evidence=tuple(_lines(steps, whose_cure)),
        waiting=_waiting(steps),
        rerun=rerun,
    )


def _lines(steps: Iterable[Step], whose_cure: str) -> Iterator[str]:
    for step in steps:
        yield f"{step.part}: {whose_cure if step.part == 'cure' else ''}{step.line}"
        yield from (f"    {line}" for line in step.shown)


def _waiting(steps: Iterable[Step]) -> Waiting | None:
    seen = next((step.waiting for step in steps if step.waiting is not None), None)
    return None if seen is None else Waiting(num_ranks=seen.num_ranks, edges=seen.edges, blamed=seen.blamed)


def _text(words: Words) -> Text:
    return Text(en=words.en, fa=words.fa)
