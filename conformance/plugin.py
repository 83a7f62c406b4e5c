"""The pytest plug-in: hooks only. Each hands its work to the module that knows how.

The process that collects and runs checks (an xdist worker, or pytest itself) keeps a journal: workers in a private
folder that the controller makes and reads at the end, pytest itself in its memory. The controller gives the record to
``pytest_lockstep_record``.
"""

from __future__ import annotations

import dataclasses
import gc
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.configuration
import pytest

from conformance import collect, ending, forall, hooks, options, scenarios, skimming, stopping, terminal
from conformance.checks import Broken, Description, Judge, Pool, Subject, why_missing
from conformance.collect import CHECK
from conformance.describing import Descriptions
from conformance.grading.time_limit import TimeLimit, function_of
from conformance.journal import Journal
from conformance.ledger import Ledger, LedgerError
from conformance.patience import Patience
from conformance.ruling import Ruling, rule, to_result
from conformance.state import STATE, State
from conformance.verdict import ScenarioStory, Verdict
from fixtures.plugin import has_workers, start_early
from fixtures.world.server import inherit

forall.register_profiles()

JUDGE = pytest.StashKey[Judge]()
SUBJECT = pytest.StashKey[Subject]()
DESCRIPTION = pytest.StashKey[Description]()
STORY = pytest.StashKey[ScenarioStory]()  # of a failure mode that no claim is about
FOREGONE = pytest.StashKey[Broken]()  # the verdict is known before the check runs


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare Lockstep's options."""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Offer the hook that reports implement."""
    pluginmanager.add_hookspecs(hooks)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Answer ``--list-claims`` and ``--list-scenarios`` and stop."""
    if config.option.list_claims:
        try:
            print(Ledger.load().listing())
        except LedgerError as error:
            raise pytest.UsageError(str(error)) from None
        return 0
    if config.option.list_scenarios:
        print(scenarios.listing())
        return 0
    return None


@pytest.hookimpl(tryfirst=True)  # before the server of worlds and the workers start
def pytest_configure(config: pytest.Config) -> None:
    """Read the command line; an unknown name ends the run here with exit status 4."""
    config.addinivalue_line(
        "markers", "claim(id, *, tier, provides, despite, alone): the claim of the ledger that a check examines"
    )
    config.addinivalue_line("markers", "optional(parts): what the contract leaves open, and the check is about")
    config.addinivalue_line("markers", "scenario(id): the failure mode that a check reproduces")
    choice = options.choose(config)
    workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
    worker = "main" if workerinput is None else str(workerinput["workerid"])
    folder = Path(tempfile.mkdtemp(prefix="lockstep-run-") if workerinput is None else workerinput["lockstep_folder"])
    shared = folder if worker != "main" or has_workers(config) else None
    state = config.stash[STATE] = State(
        choice=choice,
        folder=folder,
        is_controller=workerinput is None,
        has_workers=has_workers(config),
        journal=Journal(shared, worker),
        descriptions=Descriptions(shared),
        seed=_seed(config),
    )
    if state.is_controller:
        inherit(folder)
        config.add_cleanup(stopping.heed())
        config.pluginmanager.register(stopping)
    if choice.scenario is not None:
        start_early(config)
    hypothesis.configuration.set_hypothesis_home_dir(folder / "hypothesis")
    if not config.getoption("--hypothesis-profile", None):
        hypothesis.settings.load_profile("lockstep")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    state = config.stash.get(STATE, None)
    if state is not None and state.is_controller:
        shutil.rmtree(state.folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the run keeps its journals; also one that replaces a worker that died."""
    node.workerinput["lockstep_folder"] = str(node.config.stash[STATE].folder)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is examined."""
    choice = config.stash[STATE].choice
    if choice.mutants is not None:
        return f"lockstep: {sum(impl.breaks is not None for impl in choice.impls)} mutants ({choice.mutants})"
    return f"lockstep: {', '.join(impl.name for impl in choice.impls)}; report in {choice.folder}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file that has nothing of what was chosen, unless it was named itself."""
    named = {config.invocation_params.dir / argument.partition("::")[0] for argument in config.args}
    choice = config.stash[STATE].choice
    claims = choice.claims if choice.mutants is None else None
    if collection_path in named or (claims is None and choice.scenario is None):
        return None
    return skimming.is_beside(collection_path, claims, is_scenario=choice.scenario is not None) or None


@pytest.hookimpl(tryfirst=True)  # so that the implementation comes first in every node id
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each check its implementations."""
    collect.parametrize(metafunc, metafunc.config.stash[STATE].choice)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what ``--claim``, ``--scenario`` and ``--mutants`` choose."""
    dropped = collect.select(items, config.stash[STATE].choice, config)
    if dropped:
        config.hook.pytest_deselected(items=dropped)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note in the journal what this run sets out to deliver."""
    gc.freeze()  # what was imported and collected stays to the end: no garbage collection need look at it again
    planned = [item.stash[CHECK].planned for item in session.items if CHECK in item.stash]
    if planned and not session.config.option.collectonly:
        session.config.stash[STATE].journal.planned(planned)


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Judge:
    """Where the check puts its evidence."""
    state = request.config.stash[STATE]
    check = request.node.stash.get(CHECK, None)
    is_mutant = check is not None and check.chosen is not None and check.chosen.breaks is not None
    found = Judge(seed=state.seed, shrink=not is_mutant)
    request.node.stash[JUDGE] = found
    return found


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[ScenarioStory], None]:
    """Hands over the story of a failure mode that no claim is about: into the report, and into nobody's score."""

    def keep(story: ScenarioStory) -> None:
        request.node.stash[STORY] = story

    return keep


@pytest.fixture
def subject(request: pytest.FixtureRequest, worlds: Pool) -> Subject:
    """The implementation under examination, run in worlds of rank processes."""
    state = request.config.stash[STATE]
    check = request.node.stash[CHECK]
    assert check.chosen is not None
    limit = state.limits.setdefault(check.planned.impl, TimeLimit(state.choice.time_limit_s))
    is_late = limit.is_over  # then not even its names are looked up, which would import it
    nothing = Description(name=check.chosen.name, spec=check.chosen.spec)
    description = nothing if is_late else state.descriptions.get(check.chosen, worlds)
    patience = state.patience.setdefault((check.planned.impl, check.provides), Patience())
    function = function_of(check.planned.asks, description.spellings)
    found = Subject(description, worlds, patience, limit.part(function))
    request.node.stash[DESCRIPTION] = description
    request.node.stash[SUBJECT] = found
    if is_late:
        request.node.stash[FOREGONE] = Broken(Verdict.LOST, limit.told("before"))
    elif (check.planned.impl, check.planned.claim) in state.killed:
        request.node.stash[FOREGONE] = Broken(Verdict.NOT_CHECKED, "this mutant has broken another case of the claim")
    elif description.verdict is not None:
        # A mutant that cannot be imported has not shown that any check sees its fault.
        verdict = description.verdict if check.chosen.breaks is None else Verdict.SUITE_ERROR
        request.node.stash[FOREGONE] = Broken(verdict, description.reason)
    elif reason := why_missing(description, check.provides):
        request.node.stash[FOREGONE] = Broken(Verdict.NOT_PROVIDED, reason)
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note that the check begins: without a result later, its worker died in it."""
    if CHECK in item.stash:
        item.config.stash[STATE].journal.started(item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Do not run a check whose verdict is known."""
    if (foregone := item.stash.get(FOREGONE, None)) is not None:
        raise foregone


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn how the check ended into a verdict, note it in the journal, and tell pytest in its own terms."""
    check = item.stash.get(CHECK, None)
    broken = None if call.excinfo is None else call.excinfo.value
    if check is not None and isinstance(broken, Broken) and broken.verdict is not Verdict.SUITE_ERROR:
        item.repr_failure = _message  # type: ignore[method-assign]  # a traceback would be made for nobody
    report = yield
    if check is None and call.when == "call" and STORY in item.stash:
        verdict = Verdict.HOLDS if report.outcome == "passed" else Verdict.SUITE_ERROR
        item.config.stash[STATE].journal.story(item.nodeid, dataclasses.replace(item.stash[STORY], verdict=verdict))
    if check is None or (call.when != "call" and call.excinfo is None):
        return report
    error = None if call.excinfo is None else call.excinfo.value
    ruling = rule(error, item.stash.get(JUDGE, None), item.stash.get(DESCRIPTION, None), check.planned.claim)
    _note(item, ruling, call.duration)
    is_mutant = check.chosen is not None and check.chosen.breaks is not None
    if is_mutant and ruling.verdict.is_broken:
        item.config.stash[STATE].killed.add((check.planned.impl, check.planned.claim))
        report.outcome, report.longrepr = "passed", None
    else:
        _tell_pytest(report, item, ruling, call.duration)
    report.lockstep = ruling.verdict.value  # type: ignore[attr-defined]  # pytest carries extra attributes over
    return report


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    """Show the verdict's letter and word; the categories stay pytest's own."""
    verdict = getattr(report, "lockstep", None)
    if verdict is None:
        return None
    category = "xfailed" if hasattr(report, "wasxfail") else report.outcome
    return category, terminal.LETTERS[Verdict(verdict)], verdict.upper()


@pytest.hookimpl(trylast=True)  # after xdist has ended its workers
def pytest_sessionfinish(session: pytest.Session) -> None:
    """On the controller: put everything together, set the exit status, hand the record over."""
    state = session.config.stash[STATE]
    state.journal.close()
    if state.is_controller and not session.config.option.collectonly:
        ending.finish(session, state)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> Generator[None]:
    """Show broken claims on cards instead of among pytest's failures; the counts stay pytest's."""
    stats = terminalreporter.stats
    failed = stats.get("failed", [])
    plain = [report for report in failed if not hasattr(report, "lockstep_card")]
    stats["failed"] = plain
    try:
        yield
    finally:
        stats["failed"] = failed
        if not failed:
            del stats["failed"]
    ending.show(terminalreporter, config.stash[STATE])


def _message(excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
    """What a card replaces; the frames in it are the suite's own, and reading their sources takes long."""
    return str(excinfo.value)


def _note(item: pytest.Item, ruling: Ruling, duration_s: float) -> None:
    found, of = item.stash.get(JUDGE, None), item.stash.get(SUBJECT, None)
    result = to_result(ruling, item.stash[CHECK].planned, found, duration_s=duration_s)
    if (size := _world_size(item, of)) is not None:
        result = dataclasses.replace(result, data={**result.data, "world_size": size})
    item.config.stash[STATE].journal.result(
        item.nodeid,
        result,
        world_sizes=set() if of is None else of.world_sizes,
        story=None if found is None else found.story,
    )


def _world_size(item: pytest.Item, of: Subject | None) -> int | None:
    """The number of ranks that a case is about: its parameter, or the only one that it ran on."""
    asked = getattr(getattr(item, "callspec", None), "params", {}).get("world_size")
    sizes = set() if of is None else of.world_sizes
    return asked if isinstance(asked, int) else next(iter(sizes)) if len(sizes) == 1 else None


def _tell_pytest(report: pytest.TestReport, item: pytest.Item, ruling: Ruling, duration_s: float) -> None:
    """Broken claims fail with their card as text, the suite's errors keep their traceback, the rest is skipped."""
    verdict = ruling.verdict
    if verdict is Verdict.HOLDS:
        return
    if not verdict.is_passing:
        if report.outcome != "failed" or verdict is not Verdict.SUITE_ERROR:
            result = to_result(ruling, item.stash[CHECK].planned, None, duration_s=duration_s)
            report.longrepr = terminal.report_text(result)
            report.lockstep_card = True  # type: ignore[attr-defined]  # as below
        report.outcome = "failed"
        return
    file, line, _ = item.location
    report.outcome = "skipped"
    report.longrepr = (str(item.config.rootpath / file), line or 0, f"{verdict.value}: {ruling.message}")
    if verdict is Verdict.DEVIATES:
        report.wasxfail = ruling.message


def _seed(config: pytest.Config) -> int:
    """The seed of ``--hypothesis-seed``; a fixed one otherwise, so that every run draws the same cases."""
    asked = config.getoption("--hypothesis-seed", None)
    if asked is None:
        return 0
    if str(asked) == "random":
        return int.from_bytes(os.urandom(4), "big")
    return int(asked) if str(asked).lstrip("-").isdigit() else zlib.crc32(str(asked).encode())
