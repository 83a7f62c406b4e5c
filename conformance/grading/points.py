"""From results to points: what a hand-in earns under a rubric.

Points are earned by ``holds`` and by nothing else. A claim that was broken, refused or not provided earns none, so
nobody gains by leaving something out. What the suite could not answer (its own error, a worker that died, a witness
that is missing here, time that ran out) earns nothing yet and is *open*: a score with open points is not final.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from conformance.grading.rubric import Rubric
from conformance.verdict import WORST_FIRST, Earned, Points, Result, RubricInfo, Score, Tier, Verdict, points_told

OPEN = frozenset({Verdict.SUITE_ERROR, Verdict.LOST, Verdict.INCONCLUSIVE, Verdict.NOT_CHECKED})


def scores(results: Sequence[Result], impls: Iterable[str], rubric: Rubric) -> dict[str, Score]:
    """The score of each implementation, in the order given."""
    return {impl: _score([result for result in results if result.impl == impl], rubric) for impl in impls}


def info(results: Iterable[Result], impls: Iterable[str], rubric: Rubric) -> RubricInfo:
    """The rubric as the report names it, with the weights that count for nothing in this run."""
    named = set(impls)
    used = {(result.claim, result.tier) for result in results if result.impl in named}
    unused = sorted(f"{claim} {tier}" for claim, tier in rubric.demanded - used)
    return RubricInfo(name=rubric.name, sha256=rubric.sha256, unused=tuple(unused))


def _score(results: Sequence[Result], rubric: Rubric) -> Score:
    cases: dict[tuple[str, Tier], list[Verdict]] = {}
    for result in results:
        if (result.claim, result.tier) in rubric.weights:
            cases.setdefault((result.claim, result.tier), []).append(result.verdict)
    earned = [_earned(*pair, cases[pair], rubric) for pair in rubric.weights.keys() & cases.keys()]
    order = {tier: position for position, tier in enumerate(Tier)}
    earned.sort(key=lambda line: (order[line.tier], line.claim))
    tiers = {tier.value: _total(line for line in earned if line.tier is tier) for tier in Tier}
    total = _total(earned)
    return Score(
        points=total.points,
        out_of=total.out_of,
        open=total.open,
        tiers={tier: points for tier, points in tiers.items() if points.out_of},
        breakdown=tuple(earned),
    )


def _earned(claim: str, tier: Tier, verdicts: Sequence[Verdict], rubric: Rubric) -> Earned:
    weight = rubric.weights[claim, tier]
    if rubric.credit == "cases":
        points = weight * verdicts.count(Verdict.HOLDS) / len(verdicts)
        undecided = weight * sum(verdict in OPEN for verdict in verdicts) / len(verdicts)
    else:
        deciding = _deciding(verdicts)
        points = weight if deciding is Verdict.HOLDS else 0.0
        undecided = weight if deciding in OPEN else 0.0
    return Earned(
        claim=claim,
        tier=tier,
        weight=weight,
        points=_rounded(points),
        open=_rounded(undecided),
        verdict=_deciding(verdicts),
    )


def _deciding(verdicts: Iterable[Verdict]) -> Verdict:
    """What was decided against the hand-in, then what is open, then what holds."""
    seen = set(verdicts)
    return min(seen, key=lambda verdict: (_kind(verdict), WORST_FIRST.index(verdict)))


def _kind(verdict: Verdict) -> int:
    if verdict is Verdict.HOLDS:
        return 2
    return 1 if verdict in OPEN else 0


def _total(lines: Iterable[Earned]) -> Points:
    found = list(lines)
    return Points(
        points=_rounded(sum(line.points for line in found)),
        out_of=_rounded(sum(line.weight for line in found)),
        open=_rounded(sum(line.open for line in found)),
    )


def _rounded(points: float) -> float:
    """Thirds of a point add up to whole ones."""
    return round(points, 6)


def lines(rubric: RubricInfo, score: Mapping[str, Score]) -> list[str]:
    """For the terminal: a sentence for each implementation, then what it did not earn."""
    told = [f"{rubric.name}: no check earns points for {pair}, which counts for nothing" for pair in rubric.unused]
    for impl, found in score.items():
        tiers = ", ".join(f"{tier} {_of(p.points, p.out_of)}" for tier, p in found.tiers.items())
        told.append(f"{impl}: {_of(found.points, found.out_of)} points ({tiers})")
        if found.open:
            told.append(f"  not final: {points_told(found.open)} points are open, the suite has no answer for them yet")
        for line in found.breakdown:
            if line.points < line.weight:
                earned = _of(line.points, line.weight)
                told.append(f"  {earned}  {line.claim} ({line.tier.value}): {line.verdict.value}")
    return told


def _of(points: float, out_of: float) -> str:
    return f"{points_told(points)} of {points_told(out_of)}"
