"""What a check is written with: the ``claim`` marker, the Subject that it examines, and the Broken that ends it.

A check is a pytest function that takes ``subject`` (one implementation, run on real ranks) and ``judge`` (where it
puts its evidence). Nothing here knows how implementations are found, how verdicts travel, or what a report looks like.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pytest

from conformance.grading.time_limit import Part
from conformance.judge import Broken, Judge
from conformance.patience import CHECK_BUDGET_S, Patience
from conformance.verdict import Tier, Verdict
from fixtures.world.kernel import STRETCH
from fixtures.world.outcome import Ending, Outcome, Outcomes

__all__ = ["Broken", "Description", "Judge", "Subject", "claim", "scenario", "verdict_of", "why_missing"]

DEADLINE_S = 30.0  # for a program that stalls without a deadlock; deadlocks are told at once


def claim(
    claim_id: str,
    *,
    tier: str | Tier = Tier.CORE,
    provides: Sequence[str] = (),
    despite: Sequence[str] = (),
    alone: bool = False,
) -> pytest.MarkDecorator:
    """Mark a function (or a ``pytest.param``) as a check of one claim of the ledger.

    ``provides`` names what the implementation must offer, e.g. ``["ring_allreduce", "all_reduce|DataParallel"]`` where
    ``|`` means any of them; an implementation that lacks one is ``not-provided`` and the check does not run.
    ``despite`` names claims that this one needs and whose wrong values cannot show in this check: they block it only
    where they crash or hang. ``alone``: claims that need this one can do without what this check looks at, such as the
    arguments that are refused, and wrong values in it block none.
    """
    names = (provides,) if isinstance(provides, str) else tuple(provides)
    return pytest.mark.claim(claim_id, tier=Tier(tier), provides=names, despite=tuple(despite), alone=alone)


def optional(*parts: str) -> pytest.MarkDecorator:
    """Mark a check (or a ``pytest.param``) of what the contract leaves open, such as "DataParallel.no_sync".

    Under a rubric it earns and costs points only where the part is assigned by its name (`impls.contract.OPTIONAL`).
    """
    return pytest.mark.optional(*parts)


def scenario(scenario_id: str) -> pytest.MarkDecorator:
    """Mark a check as the one that reproduces a failure mode, so that ``--scenario=ID`` chooses it."""
    return pytest.mark.scenario(scenario_id)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One implementation as a rank process found it; ``verdict`` says why none of its checks can run, if so."""

    name: str  # as shown and as in node ids
    spec: str  # as given to --impl
    path: str = ""
    sha256: str = ""
    spellings: Mapping[str, str] = dataclasses.field(default_factory=dict)  # name in the contract -> name in the module
    missing: Mapping[str, str] = dataclasses.field(default_factory=dict)  # name in the contract -> why it is not there
    remarks: tuple[str, ...] = ()  # what its author meant to provide and did not: a misspelt adapter, for one
    blocks: tuple[str, ...] = ()
    averages: bool = False  # its table says that its all-reduces give the mean
    bindings: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)  # name -> parameter -> what
    reasons: Mapping[str, str] = dataclasses.field(default_factory=dict)  # name -> why it was taken for what it is
    around: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)  # name -> what else is called, when
    ambiguous: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)  # name -> what could be it
    proposals: Mapping[str, Sequence[str]] = dataclasses.field(
        default_factory=dict
    )  # what was taken for nothing -> names
    reach: Mapping[str, Mapping[str, Any]] = dataclasses.field(
        default_factory=dict
    )  # name -> how a program without the suite calls it (`impls.reach`); "" -> what it has to do before
    deviates: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    refuses: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    verdict: Verdict | None = None
    reason: str = ""


class AnyWorld(Protocol):
    """What a Subject needs of a World."""

    def run(
        self, program: Callable[..., Any], *args: Any, deadline_s: float = ..., wall_s: float = ..., **kwargs: Any
    ) -> Outcomes:
        """Run the program on every rank."""


class Pool(Protocol):
    """What a Subject needs of a WorldPool."""

    def world(self, size: int, impl: str | None = ..., bare: bool = ..., trace: bool = ...) -> Any:
        """Give a warm world of this size and implementation."""


class Subject:
    """One implementation under examination, run in worlds of rank processes."""

    def __init__(
        self,
        description: Description,
        pool: Pool,
        patience: Patience | None = None,
        limit: Part | None = None,
    ) -> None:
        self.description = description
        self.world_sizes: set[int] = set()  # every size that was asked for, for the report
        self._pool = pool
        self._patience = patience or Patience()
        self._limit = limit or Part()
        self._spent_s = 0.0
        self._num_runs = 0

    def __repr__(self) -> str:
        return f"<subject {self.name}>"

    @property
    def name(self) -> str:
        """The implementation's name as shown."""
        return self.description.name

    @property
    def more_roundings(self) -> int:
        """Of a sum that it gives: a division by N and a multiplication where its table says that it averages."""
        return 2 if self.description.averages else 0

    def has(self, name: str) -> bool:
        """Whether the implementation provides this name of the contract (it may still say NotImplementedError)."""
        return name in self.description.spellings

    def require(self, *names: str) -> None:
        """End the check as ``not-provided`` unless every name is there; ``a|b`` asks for either."""
        if reason := why_missing(self.description, names):
            raise Broken(Verdict.NOT_PROVIDED, reason)

    def observe(
        self,
        program: Callable[..., Any],
        world_size: int,
        *args: Any,
        deadline_s: float = DEADLINE_S,
        bare: bool = False,
        trace: bool = True,
        **kwargs: Any,
    ) -> Outcomes:
        """Run ``program(ctx, *args, **kwargs)`` on ``world_size`` ranks and give every outcome as it is."""
        self.world_sizes.add(world_size)
        self._stay_within_budget()
        world: AnyWorld = self._pool.world(world_size, impl=self.description.spec, bare=bare, trace=trace)
        began = time.monotonic()
        patient_s = self._patience.deadline_s(deadline_s)
        most_s = STRETCH * patient_s
        bound_s = self._limit.bound_s(most_s)
        outcomes = world.run(program, *args, deadline_s=patient_s, wall_s=bound_s, **kwargs)
        took_s = time.monotonic() - began
        stalled = any(outcome.hang is not None and not outcome.hang.deadlock for outcome in outcomes)
        self._limit.note(took_s, stalled=stalled)
        if stalled and took_s >= bound_s and bound_s < most_s:
            raise Broken(Verdict.LOST, self._limit.told(), outcomes=outcomes)
        self._patience.note(outcomes, took_s)
        self._spent_s += took_s
        self._num_runs += 1
        return outcomes

    def run(
        self,
        program: Callable[..., Any],
        world_size: int,
        *args: Any,
        deadline_s: float = DEADLINE_S,
        bare: bool = False,
        trace: bool = True,
        **kwargs: Any,
    ) -> Outcomes:
        """Like ``observe``; raises Broken (hangs, crashes, not-provided) unless every rank returned."""
        outcomes = self.observe(program, world_size, *args, deadline_s=deadline_s, bare=bare, trace=trace, **kwargs)
        if (verdict := verdict_of(outcomes)) is not None:
            raise Broken(verdict, failure_text(outcomes), outcomes=outcomes)
        return outcomes

    def _stay_within_budget(self) -> None:
        """End a check whose runs all come back, and so late that the check would not; or for which no time is left."""
        if self._limit.is_spent:
            raise Broken(Verdict.LOST, self._limit.told())
        if self._spent_s > CHECK_BUDGET_S:
            raise Broken(
                Verdict.HANGS,
                f"too slow to be examined: {self._num_runs} runs on small tensors took {self._spent_s:.0f} s, and the "
                f"check, which usually takes a second, is not done after {CHECK_BUDGET_S:.0f} s",
            )


def why_missing(description: Description, names: Sequence[str]) -> str:
    """Why the first of the names (``a|b`` for either) that is not provided is not; empty when all are."""
    for name in names:
        choices = [choice.strip() for choice in name.split("|")]
        if not any(choice in description.spellings for choice in choices):
            reasons = dict.fromkeys(description.missing[choice] for choice in choices if choice in description.missing)
            told = f": {'; '.join(reasons)}" if reasons else ""
            return f"{description.name} does not provide {' or '.join(choices)}{told}"
    return ""


def says_not_provided(outcome: Outcome) -> bool:
    """Whether the rank ended because the implementation lacks a name or raised NotImplementedError in it."""
    return _raised(outcome, "NotProvided")


def lacks_device(outcome: Outcome) -> bool:
    """Whether the rank ended because the implementation asks for a device that this machine does not have."""
    return _raised(outcome, "NoSuchDevice")


def _raised(outcome: Outcome, name: str) -> bool:
    return outcome.raised is not None and outcome.raised.type.rpartition(".")[2] == name


def verdict_of(outcomes: Outcomes) -> Verdict | None:
    """What the endings alone say: None when all ranks returned. A rank that died outranks those that wait for it."""
    if outcomes.all_returned:
        return None
    failed = [outcome for outcome in outcomes if outcome.ending is not Ending.RETURNED]
    dead = [outcome for outcome in failed if outcome.ending is not Ending.HUNG]
    if not dead:
        return Verdict.HANGS
    if all(map(lacks_device, dead)):
        return Verdict.REFUSES
    return Verdict.NOT_PROVIDED if all(map(says_not_provided, dead)) else Verdict.CRASHES


def failure_text(outcomes: Outcomes) -> str:
    """The sentence for a failed run: the reason alone where a name or a device is missing, else every rank's."""
    tells = {Verdict.NOT_PROVIDED: says_not_provided, Verdict.REFUSES: lacks_device}
    verdict = verdict_of(outcomes)
    tell = None if verdict is None else tells.get(verdict)
    lacking = next((outcome for outcome in outcomes if tell is not None and tell(outcome)), None)
    return outcomes.describe() if lacking is None or lacking.raised is None else lacking.raised.text
