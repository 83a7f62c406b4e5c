"""What Lockstep says, as data: verdicts, evidence, results, and the record of one run.

Everything that crosses from the checks to the report is one of the frozen dataclasses below and becomes JSON as it
stands. This module knows nothing of pytest, of torch, or of how a verdict is reached.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

SCHEMA_VERSION = "1.1"


class Verdict(StrEnum):
    """What the evidence says about one claim and one implementation."""

    HOLDS = "holds"
    VIOLATED = "violated"
    HANGS = "hangs"
    CRASHES = "crashes"
    REFUSES = "refuses"  # on every rank: declared unsupported, or a device that is not here
    DEVIATES = "deviates"  # violated, as a bundled peer's manifest declares with reason and source
    NOT_PROVIDED = "not-provided"
    NOT_CHECKED = "not-checked"  # the ledger has the claim, the suite has no check for it yet
    BLOCKED = "blocked"  # a claim that this one needs is broken: one root cause is one red row
    INCONCLUSIVE = "inconclusive"  # a witness is missing on this machine
    SUITE_ERROR = "suite-error"  # our fault
    LOST = "lost"  # the worker died before it could say

    @property
    def is_passing(self) -> bool:
        """Whether a run whose verdicts are all like this one exits with status 0."""
        return self in _PASSING

    @property
    def is_broken(self) -> bool:
        """Whether the implementation was seen to break the claim."""
        return self in _BROKEN


# One verdict for several cases: the first of these that any case has. A case that was not provided beside one that
# holds leaves the claim holding for what is provided; a reader is shown "1 holds, 2 not provided" then. A case that was
# seen to be broken has broken the claim, whatever became of those that a run which was interrupted never reached.
WORST_FIRST = (
    Verdict.SUITE_ERROR,
    Verdict.CRASHES,
    Verdict.HANGS,
    Verdict.VIOLATED,
    Verdict.LOST,
    Verdict.BLOCKED,
    Verdict.DEVIATES,
    Verdict.REFUSES,
    Verdict.INCONCLUSIVE,
    Verdict.HOLDS,
    Verdict.NOT_PROVIDED,
    Verdict.NOT_CHECKED,
)

_PASSING = frozenset(
    {
        Verdict.HOLDS,
        Verdict.NOT_PROVIDED,
        Verdict.NOT_CHECKED,
        Verdict.DEVIATES,
        Verdict.REFUSES,
        Verdict.INCONCLUSIVE,
    }
)
_BROKEN = frozenset({Verdict.VIOLATED, Verdict.HANGS, Verdict.CRASHES})


class Tier(StrEnum):
    """How much of a user's expectation a check asks for; shown and scored apart."""

    CORE = "core"  # what the cheatsheet claims, on the shapes everyone must handle
    CONTRACT = "contract"  # what a user of the block relies on
    EXOTIC = "exotic"  # dtypes, 0-d, empty, non-contiguous, five and eight ranks


class Truth(StrEnum):
    """What is known about the printed claim itself, whatever an implementation does."""

    EXACT = "exact"
    CONDITIONAL = "conditional"  # true only under the named condition
    CORRECTED = "corrected"  # false as written; the statement says what is true
    OPINION = "opinion"  # no measurement decides it


class Witness(StrEnum):
    """Where evidence comes from; never from what the implementation says of itself."""

    VALUE = "value"
    TRACE = "trace"
    WIRE = "wire"
    MEMORY = "memory"
    CLOCK = "clock"
    MODEL = "model"
    SIMULATION = "simulation"
    HANG = "hang"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One text in English and in Persian."""

    en: str
    fa: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseHint:
    """A hint for some cases of a claim: those whose function's name fits one of the shell patterns.

    A pattern may have another one in brackets, for the parameters: ``test_*[*embedding*]``.
    """

    cases: tuple[str, ...]
    hint: Text
    verdict: Verdict = Verdict.VIOLATED  # how the case ended: what leads to a hang seldom leads to wrong values


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim of the cheatsheet, as the ledger holds it."""

    id: str
    section: str
    text: Text  # what the cheatsheet claims
    truth: Truth
    statement: Text  # the correct statement, which verdicts are about
    source: str  # paper, documentation or measurement behind the statement
    line: int | None  # where in the cheatsheet; None for a claim that the sheet only implies
    formula: str = ""
    needs: tuple[str, ...] = ()  # claims that must hold before this one can say anything
    same_as: str | None = None  # the id under which the same fact is counted
    hint: Text = Text(en="", fa="")  # symptom, usual causes, where to look
    case_hints: tuple[CaseHint, ...] = ()  # in place of `hint`, the first that fits
    killed_by: tuple[str, ...] = ()  # mutants that break it, from the committed mutant table

    def hint_for(self, case: str, verdict: Verdict = Verdict.VIOLATED) -> Text | None:
        """The hint for cases that ended like this one, else the claim's own, which is about wrong values only."""
        fitting = (
            item.hint
            for item in self.case_hints
            if item.verdict is verdict and any(_fits(case, pattern) for pattern in item.cases)
        )
        return next(fitting, self.hint if verdict is Verdict.VIOLATED else None)


def _fits(case: str, pattern: str) -> bool:
    """Whether a case is one of those that a pattern names."""
    (function, _, parameters), (names, _, values) = (text.rstrip("]").partition("[") for text in (case, pattern))
    return fnmatch.fnmatch(function, names) and fnmatch.fnmatch(parameters, values or "*")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was expected and what was seen, in words and figures a reader can follow.

    ``expected`` and ``observed`` are short texts; ``unit`` is the unit of both (``bytes``, ``messages``, ``""``).
    ``data`` holds series for plots, e.g. ``{"plot": "ring-bytes", "points": [{"x": 4, "observed": 1, "formula": 2}]}``.
    The page draws ``plot``, ``bars`` and ``gantt``; what each may hold stands in the module of that name in reports/.
    """

    expected: str
    observed: str
    witness: Witness
    unit: str = ""
    message: str = ""  # one sentence: what this shows, or what went wrong and where
    examples: int = 1  # how many cases stand behind it (hypothesis examples, world sizes, steps)
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RankReport:
    """How one rank ended, for the evidence card."""

    rank: int
    ending: str
    detail: str = ""
    output: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The verdict of one case of one claim for one implementation."""

    claim: str
    case: str
    tier: Tier
    impl: str
    verdict: Verdict
    duration_s: float = 0.0
    message: str = ""
    expected: str = ""
    observed: str = ""
    unit: str = ""
    witness: str = ""
    examples: int = 0
    world_sizes: tuple[int, ...] = ()  # on which it was tried
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    hint: Text = Text(en="", fa="")
    blocked_by: str | None = None
    ranks: tuple[RankReport, ...] = ()
    timeline: str | None = None  # file name of a Chrome trace under traces/
    reproduce: str | None = None  # file name of a script under reproduce/ that shows the fault without Lockstep
    no_script: Text | None = None  # of a broken case without one: why
    rerun: str = ""  # the command that runs this case again


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ImplInfo:
    """One implementation as the run found it."""

    name: str
    path: str
    sha256: str
    blocks: tuple[str, ...]  # blocks of which it provides at least one name
    error: str = ""  # why it could not be loaded


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Who waited for whom in a deadlock: pairs of a rank and one that held it up, and the ranks to blame."""

    num_ranks: int
    edges: tuple[tuple[int, int], ...]
    blamed: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioStory:
    """One failure mode as this run reproduced it: fault shown, diagnosed, cured."""

    id: str
    claim: str
    title: Text
    symptom: Text
    diagnosis: Text
    cure: Text
    verdict: Verdict
    evidence: tuple[str, ...] = ()  # lines a witness produced, in order
    waiting: Waiting | None = None  # for the report's drawing
    rerun: str = ""
    sign: str = ""  # what is seen first, one word: the gallery is sorted by it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Earned:
    """What one claim and tier of a rubric earned. ``open``: points that the suite still owes an answer for."""

    claim: str
    tier: Tier
    weight: float
    points: float
    open: float
    verdict: Verdict  # of the case that decides


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Points of one tier, or of all of them: earned, at most, and not decided through no fault of the hand-in."""

    points: float
    out_of: float
    open: float


def points_told(points: float) -> str:
    """Points as they are shown: two decimals at most, each figure rounded by itself. The report has them exactly."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The points of one implementation under the rubric of the run; ``points + open`` is the most it can have."""

    points: float
    out_of: float
    open: float
    tiers: Mapping[str, Points]
    breakdown: tuple[Earned, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RubricInfo:
    """The rubric of the run. ``unused``: weights of claims named by their id for which no check earns points."""

    name: str
    sha256: str
    unused: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that one run found; what the report is made from."""

    suite: Mapping[str, str]  # name, version, git
    run: Mapping[str, Any]  # id, started, duration_s, exit_status, command, seed
    environment: Mapping[str, Any]  # python, torch, backend, os, cpus, world_sizes
    impls: tuple[ImplInfo, ...]
    claims: tuple[Claim, ...]
    results: tuple[Result, ...]
    scenarios: tuple[ScenarioStory, ...] = ()
    collected: int = 0  # how many results the run set out to deliver
    scripts: Mapping[str, str] = dataclasses.field(default_factory=dict)  # by the file name that results have
    rubric: RubricInfo | None = None
    score: Mapping[str, Score] = dataclasses.field(default_factory=dict)  # by implementation; empty without a rubric

    def summary(self) -> dict[str, dict[str, int]]:
        """How many results of each verdict every implementation has: ``{impl: {verdict: count}}``."""
        table: dict[str, dict[str, int]] = {info.name: {} for info in self.impls}
        for result in self.results:
            counts = table.setdefault(result.impl, {})
            counts[result.verdict.value] = counts.get(result.verdict.value, 0) + 1
        return table


def to_json(value: object) -> Any:
    """Turn a dataclass of this module, or a mapping or sequence of them, into plain JSON values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(item) for item in value]
    return value
