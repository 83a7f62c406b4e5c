"""From collected pytest items to planned checks: which implementation meets which claim, and in which order."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance import skimming
from conformance.grading.rubric import Rubric
from conformance.journal import Planned
from conformance.ledger import LedgerError, UnknownClaim
from conformance.options import SUITE, Choice, Chosen, rerun_options
from conformance.scenarios import ALL
from conformance.verdict import Tier
from impls.contract import ENTRIES

HOME = Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One item that checks a claim."""

    planned: Planned
    provides: tuple[str, ...]
    chosen: Chosen | None


CHECK = pytest.StashKey[Check]()


def parametrize(metafunc: pytest.Metafunc, choice: Choice) -> None:
    """Give a check its implementations; refuse a check without a claim, or with one that the ledger lacks."""
    if not {"subject", "judge"} & set(metafunc.fixturenames):
        return
    claims = _claims_of(metafunc.definition)
    where = f"{metafunc.module.__name__}.{metafunc.function.__name__}"
    if not claims:
        pytest.fail(f"{where} names no claim: every check is marked with @claim('the.id', ...)", pytrace=False)
    try:
        for claim in claims:
            choice.ledger.counted_as(claim)
    except (UnknownClaim, LedgerError) as error:
        pytest.fail(f"{where}: {error}", pytrace=False)
    if "subject" in metafunc.fixturenames:
        chosen = [impl for impl in choice.impls if choice.mutants != "named" or _may_meet(impl, claims)]
        if choice.mutants == "named":
            others = _functions(metafunc.config) - {metafunc.function.__name__}
            chosen = [impl for impl in chosen if not _is_left_to(others, impl, claims, choice)]
        subjects: Sequence[Chosen | None] = chosen or [None]  # an empty list would make pytest skip, in its own words
        metafunc.parametrize("subject", subjects, ids=[_name(impl) for impl in subjects], indirect=True)


def select(items: list[pytest.Item], choice: Choice, config: pytest.Config) -> list[pytest.Item]:
    """Plan the items that check a claim, keep those that were chosen (in place, by implementation), give the others."""
    checks: list[tuple[pytest.Item, Check | None]] = [(item, _check(item, choice, config)) for item in items]
    reach = _reach([check for _, check in checks if check is not None], choice)
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item, check in checks:
        if check is None:
            (kept if _is_kept(item, choice) else dropped).append(item)
        elif _is_chosen(check, choice, reach):
            item.stash[CHECK] = check
            kept.append(item)
        else:
            dropped.append(item)
    dropped += _leave_to_killing_cases(kept, choice)
    order = {impl.name: position for position, impl in enumerate(choice.impls)}
    kept.sort(key=lambda item: _position(item, order))
    items[:] = kept
    return dropped


def _claims_of(definition: pytest.Item) -> list[str]:
    """Claims named at the function, its class or module, or at a ``pytest.param`` of it."""
    marks = list(definition.iter_markers("claim"))
    for parametrization in definition.iter_markers("parametrize"):
        values = parametrization.args[1] if len(parametrization.args) > 1 else parametrization.kwargs["argvalues"]
        for value in values:
            found = [
                mark.mark if isinstance(mark, pytest.MarkDecorator) else mark for mark in getattr(value, "marks", ())
            ]
            marks += [mark for mark in found if mark.name == "claim"]
    return [str(mark.args[0]) for mark in marks]


def _check(item: pytest.Item, choice: Choice, config: pytest.Config) -> Check | None:
    mark = item.get_closest_marker("claim")
    names = set(getattr(item, "fixturenames", ()))
    if mark is None or not {"subject", "judge"} & names:
        return None
    spec = getattr(item, "callspec", None)
    chosen: Chosen | None = spec.params.get("subject") if spec is not None else None
    scenario = item.get_closest_marker("scenario")
    impl = _name(chosen) if "subject" in names else SUITE
    seed, profile = (config.getoption(name, None) for name in ("--hypothesis-seed", "--hypothesis-profile"))
    command = ["pytest", _seen_from_here(config, item.nodeid), *rerun_options(choice, impl, seed, profile)]
    provides = tuple(mark.kwargs.get("provides", ()))
    parameters = spec.params.values() if spec is not None else ()
    named = tuple(value for value in parameters if isinstance(value, str) and value in ENTRIES)
    planned = Planned(
        nodeid=item.nodeid,
        claim=str(mark.args[0]),
        case=_case(item, impl),
        tier=Tier(mark.kwargs.get("tier", Tier.CORE)),
        impl=impl,
        rerun=shlex.join(command),
        scenario=None if scenario is None else str(scenario.args[0]),
        asks=provides + named + tuple(str(part) for mark in item.iter_markers("optional") for part in mark.args),
        despite=tuple(mark.kwargs.get("despite", ())),
        alone=bool(mark.kwargs.get("alone", False)),
    )
    return Check(planned=planned, provides=provides, chosen=chosen)


def _seen_from_here(config: pytest.Config, nodeid: str) -> str:
    """The node as it is called from where pytest was started: a course keeps Lockstep in a folder of its own."""
    file, sign, rest = nodeid.partition("::")
    path = os.path.relpath(config.rootpath / file, config.invocation_params.dir)
    return Path(path).as_posix() + sign + rest


def _case(item: pytest.Item, impl: str) -> str:
    """The function and its parameters, without the implementation, which ``parametrize`` puts first."""
    function = getattr(item, "originalname", None) or item.name
    spec = getattr(item, "callspec", None)
    if spec is None:
        return str(function)
    parameters = spec.id.removeprefix(impl).removeprefix("-") if "subject" in spec.params else spec.id
    return f"{function}[{parameters}]" if parameters else str(function)


def _is_kept(item: pytest.Item, choice: Choice) -> bool:
    """An item that checks no claim: a failure mode from public reports, or a test of somebody's."""
    scenario = item.get_closest_marker("scenario")
    if scenario is None:
        return choice.scenario is None
    return choice.includes_reported and (choice.scenario is None or _is_told(str(scenario.args[0]), choice))


def _is_told(scenario: str | None, choice: Choice) -> bool:
    return scenario is not None and choice.scenario in (scenario, ALL)


def _is_chosen(check: Check, choice: Choice, reach: dict[str, frozenset[str]]) -> bool:
    planned = check.planned
    if choice.rubric is not None and not _is_graded(check, choice.rubric):
        return False
    if choice.claims is not None and planned.claim not in choice.claims:
        return False
    if choice.scenario is not None and not _is_told(planned.scenario, choice):
        return False
    if choice.mutants is None:
        return True
    return check.chosen is not None and planned.claim in reach.get(check.chosen.name, {planned.claim})


def _is_graded(check: Check, rubric: Rubric) -> bool:
    return check.planned.impl != SUITE and rubric.covers(check.planned.claim, check.planned.tier, check.planned.asks)


def _is_left_to(others: frozenset[str], impl: Chosen, claims: Sequence[str], choice: Choice) -> bool:
    """Whether a mutant meets its claims in functions among these: most of all pairs are never made into items."""
    named = set(impl.breaks or ()) & set(claims)
    known = {choice.killing_cases.get((impl.name, claim), "").partition("[")[0] for claim in named}
    return bool(known) and known <= others


def _functions(config: pytest.Config) -> frozenset[str]:
    """The names of all checks that are collected; none where not all of a file's are."""
    option = config.option
    is_part = any((option.keyword, option.deselect, option.ignore, option.ignore_glob))
    if is_part or any("::" in argument for argument in config.args):
        return frozenset()
    paths = [config.invocation_params.dir / argument for argument in config.args]
    return skimming.functions(tuple(paths))


def _leave_to_killing_cases(items: list[pytest.Item], choice: Choice) -> list[pytest.Item]:
    """Where the case that breaks a claim for a mutant is known and among the items, take the other cases out."""
    plans = [item.stash[CHECK].planned if CHECK in item.stash else None for item in items]
    known = {
        (plan.impl, plan.claim)
        for plan in plans
        if plan is not None and choice.killing_cases.get((plan.impl, plan.claim)) == plan.case
    }
    spared = {
        item
        for item, plan in zip(items, plans, strict=True)
        if plan is not None
        and (plan.impl, plan.claim) in known
        and choice.killing_cases[plan.impl, plan.claim] != plan.case
    }
    items[:] = [item for item in items if item not in spared]
    return list(spared)


def _reach(checks: Sequence[Check], choice: Choice) -> dict[str, frozenset[str]]:
    """The claims that each mutant meets: those it names, or all about the blocks that those are about."""
    if choice.mutants is None:
        return {}
    from impls.contract import BLOCKS  # needs torch

    blocks: dict[str, set[str]] = {}
    for check in checks:
        wanted = {name.strip() for names in check.provides for name in names.split("|")}
        about = {block for block, names in BLOCKS.items() if wanted & set(names)}
        blocks.setdefault(check.planned.claim, set()).update(about)
    reach: dict[str, frozenset[str]] = {}
    for impl in choice.impls:
        if impl.breaks is None:
            continue
        named = set(impl.breaks)
        if choice.mutants == "full":
            touched = set[str]().union(*(blocks.get(claim, set()) for claim in named))
            named |= {claim for claim, about in blocks.items() if about & touched}
        reach[impl.name] = frozenset(named)
    return reach


def _may_meet(impl: Chosen, claims: Sequence[str]) -> bool:
    return impl.breaks is None or bool(set(impl.breaks) & set(claims))


def _name(impl: Chosen | None) -> str:
    return "none" if impl is None else impl.name


def _position(item: pytest.Item, order: dict[str, int]) -> int:
    check = item.stash.get(CHECK, None)
    return -1 if check is None else order.get(check.planned.impl, len(order))
