"""The end of a run on the controller: the record and the exit status, or, for mutants, who broke what."""

from __future__ import annotations

import dataclasses
import shlex
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance import collect, mutants, record, skimming, terminal
from conformance.journal import Gathered, gather, read
from conformance.ledger import LedgerError
from conformance.options import Choice
from conformance.state import State
from conformance.verdict import Claim, Result, Verdict


def finish(session: pytest.Session, state: State) -> None:
    """Read the journals; set the session's exit status; call ``pytest_lockstep_record``."""
    gathered = gather(read(state.folder) if state.has_workers else state.journal.kept)
    choice = state.choice
    if not gathered.planned and not gathered.stories and not choice.claim_globs and choice.rubric is None:
        return
    if state.choice.mutants is not None:
        _finish_mutants(session, state, gathered)
        return
    made = record.assemble(gathered, _run(session, state, gathered))
    status = _exit_status(session, is_passing=record.is_passing(made), found=len(made.results))
    session.exitstatus = status
    made = dataclasses.replace(made, run={**made.run, "exit_status": int(status)})
    state.record = made
    if not made.results and not made.scenarios:
        if choice.rubric is not None:
            state.trouble = "the rubric gives weight to no check of this run: nothing was examined"
        return
    try:
        session.config.hook.pytest_lockstep_record(config=session.config, record=made, folder=state.choice.folder)
    except Exception as error:  # whatever a reporter does, verdicts are told and the exit status says so
        state.trouble = f"the report was not written: {type(error).__name__}: {error}"
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def show(reporter: pytest.TerminalReporter, state: State) -> None:
    """Print what ``finish`` found."""
    if state.record is not None:
        terminal.write(reporter, state.record, explain=state.choice.explain)
    if state.mutant_lines:
        reporter.section("Mutants")
        for line in state.mutant_lines:
            reporter.write_line(line)
    if state.trouble:
        reporter.write_line(state.trouble, red=True, bold=True)


def _run(session: pytest.Session, state: State, gathered: Gathered) -> record.Run:
    choice, config = state.choice, session.config
    claims: dict[str, Claim] = {}
    try:
        claims = dict(choice.ledger.claims)
    except LedgerError as error:  # the workers have said so too, as errors of collection
        state.trouble = str(error)
    is_whole = _is_whole(config)
    known = {impl.name: state.descriptions.known(impl) for impl in choice.impls}
    return record.Run(
        impls=choice.impls,
        descriptions={name: description for name, description in known.items() if description is not None},
        claims=claims,
        unchecked=_unchecked(choice, claims, gathered) if is_whole and choice.rubric is None else (),
        is_whole=is_whole,
        about={
            "id": uuid.uuid4().hex,
            "started": state.started,
            "duration_s": round(time.monotonic() - state.began, 3),
            "exit_status": int(session.exitstatus),
            "command": shlex.join(["pytest", *map(str, config.invocation_params.args)]),
            "seed": state.seed,
            "whole": is_whole,
        },
        rubric=choice.rubric,
        rootpath=config.rootpath,
    )


def _unchecked(choice: Choice, claims: Mapping[str, Claim], gathered: Gathered) -> list[str]:
    """The chosen claims that no check is about."""
    checked = skimming.checked_claims() | {planned.claim for planned in gathered.planned.values()}
    chosen = claims.keys() if choice.claims is None else choice.claims
    return [
        claim.id for claim in claims.values() if claim.id in chosen and claim.id not in checked and not claim.same_as
    ]


def _is_whole(config: pytest.Config) -> bool:
    """Whether every check was collected but for ``--claim``: only then can something be missing."""
    option = config.option
    narrowing = ("keyword", "markexpr", "scenario", "deselect", "ignore", "ignore_glob", "lf")
    if any(getattr(option, name, None) for name in narrowing):
        return False
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        return True
    homes = {config.rootpath, collect.HOME}
    return any((config.invocation_params.dir / arg).resolve() in homes for arg in config.args)


def _exit_status(session: pytest.Session, *, is_passing: bool, found: int) -> int | pytest.ExitCode:
    before = session.exitstatus
    if before == pytest.ExitCode.OK and not is_passing:
        return pytest.ExitCode.TESTS_FAILED
    if before == pytest.ExitCode.NO_TESTS_COLLECTED and found:
        return pytest.ExitCode.OK if is_passing else pytest.ExitCode.TESTS_FAILED
    return before


def _finish_mutants(session: pytest.Session, state: State, gathered: Gathered) -> None:
    """A mutant must break each claim that it names and the run reached; what is not ours to break still counts."""
    named = {impl.name: impl.breaks for impl in state.choice.impls if impl.breaks is not None}
    met: dict[str, set[str]] = {}
    broke: dict[str, set[str]] = {}
    killers: dict[str, dict[str, Result]] = {}  # claim, mutant, and the case that showed it soonest
    is_sound = True
    for nodeid, planned in gathered.planned.items():
        result = gathered.results.get(nodeid)
        met.setdefault(planned.impl, set()).add(planned.claim)
        if result is None or result.verdict in (Verdict.LOST, Verdict.SUITE_ERROR):
            is_sound = False
        elif result.verdict.is_broken and planned.impl in named:
            broke.setdefault(planned.impl, set()).add(planned.claim)
            cases, name = killers.setdefault(planned.claim, {}), planned.impl.removeprefix("mutants/")
            cases[name] = min(cases.get(name, result), result, key=lambda found: found.duration_s)
    reached = {name: set(breaks) & met.get(name, set()) for name, breaks in named.items() if name in met}
    lines = terminal.mutant_lines(broke, reached)
    unmet = {name: set(breaks) - met.get(name, set()) for name, breaks in named.items()}
    if _is_whole(session.config) and state.choice.claims is None:
        lines += [f"{name}: NO CHECK for {', '.join(sorted(gone))}" for name, gone in unmet.items() if gone]
        is_sound = is_sound and not any(unmet.values())
    state.mutant_lines = tuple(lines)
    survived = any(reached[name] - broke.get(name, set()) for name in reached)
    if (survived or not is_sound) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if path := session.config.option.killed:
        table = {claim: {name: found.case for name, found in cases.items()} for claim, cases in killers.items()}
        mutants.write_killed(table, Path(path))
