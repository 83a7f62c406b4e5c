"""The command line: Lockstep's options, and what they choose. What is misspelt is told here, before workers start."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import hypothesis
import hypothesis.errors
import pytest

from conformance import mutants, scenarios
from conformance.forall import PROFILES
from conformance.grading import rubric
from conformance.grading.rubric import Rubric
from conformance.ledger import Ledger, LedgerError, UnknownClaim
from impls.locate import ImplementationError, Kind, UnknownImplementation, bundled, locate
from impls.spec import Spec

DEFAULT_IMPL = "reference"
DEFAULT_REPORT = Path("reports") / "out"
SUITE = "suite"  # who answers for a check that examines no implementation (failure modes, models)
RERUN_REPORT = "reports/rerun"  # so that looking at one case again does not replace the report of the whole run


def add_options(parser: pytest.Parser) -> None:
    """Declare the options. An option that takes a path is written with ``=``, else pytest takes the path for a test."""
    group = parser.getgroup("lockstep", "Lockstep: conformance of distributed-training blocks")
    group.addoption(
        "--impl",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="implementation to check, e.g. --impl=reference, --impl=torch, --impl=../homework/ddp.py; repeatable",
    )
    group.addoption(
        "--adapters",
        default=None,
        metavar="FILE",
        help="a table of adapters as TOML, for implementations whose files are not to be touched; for all --impl",
    )
    group.addoption(
        "--device-shim",
        action="store_true",
        help="move requests for cuda to the CPU in the rank processes, for code that names its device",
    )
    group.addoption(
        "--claim",
        action="append",
        default=[],
        metavar="GLOB",
        help="check these claims only: an id, a pattern such as 'collectives.ring.*', or a section such as loop",
    )
    group.addoption("--scenario", default=None, metavar="NAME", help="reproduce one failure mode, or all")
    group.addoption("--explain", action="store_true", help="tell symptom, diagnosis and cure of a failure mode")
    group.addoption("--list-claims", action="store_true", help="list every claim of the ledger and stop")
    group.addoption("--list-scenarios", action="store_true", help="list every failure mode and stop")
    group.addoption(
        "--report", default=None, metavar="FOLDER", help=f"folder of the report (default: {DEFAULT_REPORT})"
    )
    group.addoption(
        "--mutants",
        nargs="?",
        const="named",
        default=None,
        choices=["named", "full"],
        help="check the checks: every mutant in the case that is known to break each claim that it names, or (full) "
        "against all claims of its block",
    )
    group.addoption(
        "--rubric",
        default=None,
        metavar="FILE",
        help="give points: a TOML file with a weight for each claim and tier; only what it weighs is checked",
    )
    group.addoption(
        "--time-limit",
        type=_seconds,
        default=math.inf,
        metavar="SECONDS",
        help="for all checks of one implementation together; what is not answered by then is lost and earns no points",
    )
    group.addoption("--killed", default=None, metavar="PATH", help="where a run with --mutants writes who broke what")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One implementation that the run examines; ``breaks`` are the claims that a mutant names, None for all others."""

    name: str
    spec: str
    path: str
    sha256: str
    breaks: tuple[str, ...] | None = None
    is_peer: bool = False  # bundled with the suite: only such a one may declare what it does otherwise
    unusable: str = ""  # why not even its names can be read; a run that gives points goes on and gives it none


@dataclasses.dataclass(frozen=True)
class Choice:
    """What the command line chose; the same in the controller and in every worker."""

    impls: tuple[Chosen, ...]
    mutants: Literal["named", "full"] | None
    claim_globs: tuple[str, ...]
    scenario: str | None
    explain: bool
    folder: Path
    rubric: Rubric | None = None
    time_limit_s: float = math.inf

    @property
    def includes_reported(self) -> bool:
        """Whether failure modes without a claim are reproduced: they examine the suite, not an implementation."""
        if self.scenario is not None:
            return True
        is_narrowed = bool(self.claim_globs or self.mutants or self.rubric)
        return not is_narrowed and DEFAULT_IMPL in [chosen.name for chosen in self.impls]

    @functools.cached_property
    def ledger(self) -> Ledger:
        """The claims (LedgerError when they do not hold together); read when first needed."""
        return Ledger.load()

    @functools.cached_property
    def killing_cases(self) -> Mapping[tuple[str, str], str]:
        """By mutant and claim, the case that is known to break it; nothing where all cases are to be run."""
        return mutants.killing_cases(mutants.KILLED) if self.mutants == "named" else {}

    @functools.cached_property
    def claims(self) -> frozenset[str] | None:
        """The ids to check, None for all; a claim that is the same as another brings that one along."""
        if not self.claim_globs:
            return None if self.rubric is None else self.rubric.claims
        chosen = self.ledger.match(self.claim_globs)
        return frozenset({claim.id for claim in chosen} | {claim.same_as for claim in chosen if claim.same_as})


def choose(config: pytest.Config) -> Choice:
    """Read the options; raises pytest.UsageError (exit status 4) for whatever does not exist or cannot be written."""
    option = config.option
    given = tuple(dict.fromkeys(option.impl))
    specs = given or (() if option.mutants else (DEFAULT_IMPL,))
    try:
        ledger = Ledger.load() if option.rubric else None
        graded = None if ledger is None else rubric.read(config.invocation_params.dir / option.rubric, ledger)
        asked = [beside(spec, option.adapters, option.device_shim) for spec in specs]
        impls = _distinct([chosen_from(spec, is_graded=graded is not None) for spec in asked])
        if option.mutants:
            impls += tuple(_mutant(found) for found in mutants.find())
        choice = Choice(
            impls=impls,
            mutants=option.mutants,
            claim_globs=tuple(option.claim),
            scenario=option.scenario,
            explain=option.explain,
            folder=_report_folder(config),
            rubric=graded,
            time_limit_s=option.time_limit,
        )
        _ = choice.claims
    except (ImplementationError, UnknownClaim, LedgerError, mutants.MutantError, rubric.RubricError) as error:
        raise pytest.UsageError(str(error)) from None
    if option.scenario not in (None, scenarios.ALL) and option.scenario not in (known := scenarios.ids()):
        raise pytest.UsageError(_unknown("scenario", option.scenario, known, "pytest --list-scenarios"))
    if option.explain and option.scenario is None:
        raise pytest.UsageError(
            f"--explain tells a failure mode: add --scenario=NAME, or all. What exists: {', '.join(scenarios.ids())}"
        )
    profile = config.getoption("--hypothesis-profile", None)
    if profile and not _is_profile(profile):
        raise pytest.UsageError(_unknown("hypothesis profile", profile, PROFILES, "README.md, How to read the report"))
    return choice


def rerun_options(choice: Choice, impl: str, seed: str | None, profile: str | None) -> list[str]:
    """The options that choose this implementation again, and the same examples."""
    spec = next((chosen.spec for chosen in choice.impls if chosen.name == impl and chosen.breaks is None), None)
    parts = [] if spec in (None, DEFAULT_IMPL) else [f"--impl={spec}"]
    if any(chosen.name == impl and chosen.breaks is not None for chosen in choice.impls):
        parts.append(f"--mutants={choice.mutants}" if choice.mutants == "full" else "--mutants")
    parts += [f"--scenario={choice.scenario}"] if choice.scenario is not None else []
    parts += [f"--hypothesis-seed={seed}"] if seed is not None else []
    parts += [f"--hypothesis-profile={profile}"] if profile is not None else []
    return [*parts, f"--report={RERUN_REPORT}"]


def beside(spec: str, adapters: str | None, device_shim: bool) -> str:
    """The spec with what stands beside it on the command line; what is bundled needs none of it."""
    asked = Spec.parse(spec)
    if asked.where in bundled() or asked.where.startswith("mutants"):
        return spec
    table = str(Path(adapters).expanduser().resolve()) if adapters else asked.adapters
    return str(dataclasses.replace(asked, adapters=table, device_shim=device_shim or asked.device_shim))


def chosen_from(spec: str, *, is_graded: bool = False) -> Chosen:
    """The implementation that a spec names. Raises `ImplementationError`.

    Where points are given only for what is not there: a broken file is worth none.
    """
    try:
        located = locate(spec)
    except UnknownImplementation:
        raise
    except ImplementationError as error:
        if not is_graded:
            raise
        path = Path(Spec.parse(spec).where).resolve()
        return Chosen(name=path.name, spec=spec, path=str(path), sha256="", unusable=str(error))
    name = located.path.name if located.kind in (Kind.FILE, Kind.FOLDER) else located.asked.where
    name = f"{name}:{located.asked.only}" if located.asked.only else name
    is_peer = located.kind is Kind.BUNDLED
    return Chosen(name=name, spec=spec, path=str(located.path), sha256=located.sha256, is_peer=is_peer)


def _mutant(found: mutants.Mutant) -> Chosen:
    return dataclasses.replace(chosen_from(found.spec), name=found.name, breaks=found.breaks)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0:
        raise ValueError(f"{text} is no number of seconds")
    return seconds


def _is_profile(name: str) -> bool:
    try:
        hypothesis.settings.get_profile(name)
    except hypothesis.errors.InvalidArgument:
        return False
    return True


def _distinct(impls: Sequence[Chosen]) -> tuple[Chosen, ...]:
    """Two files of one name are shown by what was typed; one that is called as the suite is, by its path."""
    names = [chosen.name for chosen in impls]
    shown = [chosen.spec if names.count(chosen.name) > 1 else chosen.name for chosen in impls]
    return tuple(
        dataclasses.replace(chosen, name=name if name != SUITE else chosen.path)
        for chosen, name in zip(impls, shown, strict=True)
    )


def _report_folder(config: pytest.Config) -> Path:
    """The report folder; one that was asked for is made and tried now, not when all the work is done."""
    asked = config.option.report
    folder = config.invocation_params.dir / asked if asked else config.rootpath / DEFAULT_REPORT
    folder = Path(os.path.normpath(folder))
    if hasattr(config, "workerinput"):
        return folder
    try:
        if asked:
            folder.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            with tempfile.TemporaryFile(dir=folder):
                pass
        else:
            home = next(parent for parent in folder.parents if parent.exists())
            if not (home.is_dir() and os.access(home, os.W_OK)):
                raise PermissionError(13, "Permission denied", str(home))
    except OSError as error:
        raise pytest.UsageError(
            f"the report folder {folder} cannot be written ({error.strerror}); choose another: pytest --report=FOLDER"
        ) from None
    return folder


def _unknown(what: str, asked: str, known: Iterable[str], listing: str) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(asked, names, n=1, cutoff=0.4)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    exists = ", ".join(names) if names else "none yet"
    return f"there is no {what} {asked!r}.{meant} What exists: {exists}. See: {listing}"
