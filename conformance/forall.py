"""Property tests on real ranks: hypothesis draws the cases, and shrinking is bounded in time.

No case is ever run twice: a broken one is remembered and raised again when hypothesis comes back to it, so a failure
that depends on timing cannot look flaky, and once the time for shrinking is used up nothing more is run.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from conformance.judge import Broken
from conformance.verdict import Evidence, Verdict

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.judge import Judge

DEFAULT_EXAMPLES = 25
PROFILES = {"lockstep": DEFAULT_EXAMPLES, "quick": DEFAULT_EXAMPLES // 5, "thorough": DEFAULT_EXAMPLES * 20}
SHRINK_BUDGET_S = 20.0


def register_profiles() -> None:
    """Make them known to ``--hypothesis-profile``: ``lockstep`` is the default; none writes an example database."""
    common: dict[str, Any] = {
        "deadline": None,  # a world has its own deadlines
        "database": None,
        "print_blob": False,
        "report_multiple_bugs": False,
        "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    }
    for name, max_examples in PROFILES.items():
        settings.register_profile(name, max_examples=max_examples, **common)
    # Hypothesis draws some values from the constants in the source of every module that happens to be loaded. The same
    # seed would draw other cases in one file than in all, and seconds go into reading hundreds of sources.
    providers._get_local_constants = _no_constants


def _no_constants() -> Constants:
    return providers._local_constants  # to which nothing was added


def examples_for(max_examples: int | None) -> int:
    """How many examples to draw: as asked, times as many as the chosen profile has more than the default one."""
    profile = settings().max_examples
    return profile if max_examples is None else max(1, max_examples * profile // DEFAULT_EXAMPLES)


class _Search:
    """One run of hypothesis over one body: what broke, what was tried, and when to stop."""

    def __init__(self, judge: Judge, body: Callable[[Any], None]) -> None:
        self.judge = judge
        self.body = body
        self.tried = 0
        self.broken: dict[str, Exception] = {}
        self.first: Exception | None = None
        self.smallest: tuple[str, Exception] | None = None
        self.until = float("inf")
        self.evidence: dict[str, Evidence] = {}  # by message, the last of each
        self.kept = len(judge.evidence)

    def examine(self, case: Any) -> None:
        key = repr(case)
        if key in self.broken:
            self._fail(key, self.broken[key])
        if self.first is not None and (self._is_final(self.first) or time.monotonic() > self.until):
            return  # no time left: what is not known to break counts as whole
        self.tried += 1
        try:
            self.body(case)
        except hypothesis.errors.UnsatisfiedAssumption:
            self.tried -= 1
            raise
        except Exception as failure:
            if self.first is not None and _kind(failure) != _kind(self.first):
                return  # another fault than the one being shrunk
            self.first = self.first or failure
            self.until = min(self.until, time.monotonic() + SHRINK_BUDGET_S)
            self.broken[key] = failure
            self._fail(key, failure)
        self._keep_evidence()

    def _fail(self, key: str, failure: Exception) -> None:
        self.smallest = (key, failure)
        raise failure

    def _keep_evidence(self) -> None:
        for item in self.judge.evidence[self.kept :]:
            self.evidence[item.message] = item
        del self.judge.evidence[self.kept :]

    @staticmethod
    def _is_final(failure: Exception) -> bool:
        """Whether one such case settles the matter: not-provided and inconclusive are not shrunk."""
        return isinstance(failure, Broken) and not failure.verdict.is_broken


def search(
    judge: Judge, strategy: SearchStrategy[Any], body: Callable[[Any], None], *, max_examples: int | None
) -> None:
    """Run ``body`` over drawn cases; see ``Judge.forall``."""
    run = _Search(judge, body)
    phases = [Phase.explicit, Phase.generate, *([Phase.shrink] if judge.shrink else [])]

    @hypothesis.seed(judge.seed)
    @settings(max_examples=examples_for(max_examples), phases=phases, derandomize=False)
    @hypothesis.given(case=strategy)
    def examine(case: Any) -> None:
        run.examine(case)

    try:
        examine()
    except Exception as failure:
        judge.examples_tried += run.tried
        if run.smallest is None:  # not a case: the strategy itself is at fault
            raise
        _explain(*run.smallest, run.tried, failure)
    judge.examples_tried += run.tried
    judge.evidence.extend(dataclasses.replace(item, examples=0) for item in run.evidence.values())


def _explain(case: str, smallest: Exception, tried: int, failure: Exception) -> None:
    """Raise the failure of the smallest case, which is named in its message."""
    told = f"falsified by {case} (example {tried} and smaller)" if tried > 1 else f"falsified by {case}"
    if not isinstance(smallest, Broken):
        smallest.add_note(told)
        raise smallest from None
    if not smallest.verdict.is_broken:
        raise smallest from None
    message = f"{smallest.message}\n{told}"
    raise Broken(smallest.verdict, message, evidence=smallest.evidence, outcomes=smallest.outcomes) from None


def _kind(failure: Exception) -> Verdict | type[Exception]:
    return failure.verdict if isinstance(failure, Broken) else type(failure)
