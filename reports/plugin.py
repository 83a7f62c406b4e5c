"""The pytest plug-in: show how far a run is; at its end write the report, say what came out and where it lies.

It knows the record that the checks hand over, and nothing of how it came about. A report that cannot be written costs
the run its exit status 0, never its verdicts.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from _pytest.junitxml import xml_key  # pytest offers no public way to the JUnit writer

from conformance.verdict import Record
from reports import badge, baseline, build, closing, html, markdown, paper, progress, reading, receipt, scripts, traces
from reports.files import CannotWrite, write_together, write_whole

# The files of a report and who draws them; the page that a reader opens comes first.
DRAWN: dict[str, Callable[[build.Report], str]] = {
    "report.html": html.render,
    reading.FILE_NAME: build.dumps,
    "report.md": markdown.render,
    "badge.svg": badge.render,
}


@dataclasses.dataclass(slots=True)
class _Written:
    """What became of the report of this run."""

    baseline: build.Report | None = None  # an earlier report, to compare with
    report: build.Report | None = None
    folder: Path | None = None
    files: list[str] = dataclasses.field(default_factory=list)
    trouble: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)  # cost nothing


WRITTEN = pytest.StashKey[_Written]()
JUNIT_FOLDER = pytest.StashKey[Path]()  # where pytest writes junit.xml until the report folder is known


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option of reports; an option that takes a path is written with ``=``."""
    group = parser.getgroup("lockstep")
    group.addoption(
        "--baseline",
        default=None,
        metavar="REPORT",
        help="an earlier report.json, or its folder: the report says what changed since",
    )
    group.addoption(
        "--progress",
        type=float,
        default=progress.EVERY_S,
        metavar="SECONDS",
        help="say how far the run is, at most this often (default: %(default)g; 0: never)",
    )


@pytest.hookimpl(tryfirst=True)  # before the JUnit writer looks at its option
def pytest_configure(config: pytest.Config) -> None:
    """Read the baseline, and have pytest write JUnit XML also when the user asked for none."""
    if hasattr(config, "workerinput"):
        return
    config.stash[WRITTEN] = _Written(baseline=_baseline(config))
    if not config.option.progress >= 0:
        raise pytest.UsageError(f"--progress={config.option.progress:g} is no number of seconds; 0 means never")
    if getattr(config.option, "xmlpath", "") is None and not config.option.collectonly:
        # Only a name: pytest makes the folder when it writes, so that a killed run leaves none.
        config.stash[JUNIT_FOLDER] = Path(tempfile.gettempdir()) / f"lockstep-junit-{uuid.uuid4().hex}"
        config.option.xmlpath = str(config.stash[JUNIT_FOLDER] / "junit.xml")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Show how far the run is, from now on: only here is there a terminal to write to."""
    if not hasattr(session.config, "workerinput"):
        progress.register(session.config, session.config.option.progress)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    if (folder := config.stash.get(JUNIT_FOLDER, None)) is not None:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_lockstep_record(config: pytest.Config, record: Record, folder: Path) -> None:
    """Write report.json, what is made from it, and the traces into ``folder``; what goes wrong is told at the end."""
    written = config.stash[WRITTEN]
    written.folder = folder
    record, timelines = traces.separate(record)
    report = written.report = build.build(record)
    if written.baseline is not None:
        report = written.report = baseline.with_before(report, written.baseline)
        if all(result["before"] is None for result in report["results"]):
            written.notes.append("--baseline says nothing here: no result of this run is in it")
    try:
        reading.validate(report)
    except reading.InvalidReport as error:
        written.trouble.append(f"the report breaks its own rules, a fault of the suite: {error}")
    texts = {}
    for name, draw in DRAWN.items():
        try:
            texts[name] = draw(report)
        except Exception as error:  # a page that cannot be drawn must not cost the results
            written.trouble.append(f"{name} was not drawn, a fault of the suite: {type(error).__name__}: {error}")
    try:
        files = texts | {f"{traces.FOLDER}/{name}": text for name, text in timelines.items()}
        files |= {f"{scripts.FOLDER}/{name}": text for name, text in record.scripts.items()}
        write_together({folder / name: text for name, text in files.items()})
    except CannotWrite as error:
        written.trouble.append(f"there is no report of this run: {error}. Choose another folder: --report=FOLDER")
        return
    receipt.give(texts[reading.FILE_NAME])
    written.files = list(texts)
    if timelines:
        written.files.append(f"{traces.FOLDER}/ ({len(timelines)})")
    if record.scripts:
        written.files.append(f"{scripts.FOLDER}/ ({len(record.scripts)})")
    traces.remove_old(folder, keep=timelines)
    scripts.remove_old(folder, keep=record.scripts)


@pytest.hookimpl(wrapper=True, trylast=True)  # inside the terminal's own wrapper, around every writer
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Put junit.xml beside the report; a report that could not be written is no success."""
    yield
    written = session.config.stash.get(WRITTEN, None)
    if written is None:
        return
    _place_junit(session.config, written)
    if written.trouble and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


@pytest.hookimpl(wrapper=True, tryfirst=True)  # the last lines of the run
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Generator[None]:
    """Close with what came out, where to start and where the report lies, or why there is none."""
    yield
    written = config.stash.get(WRITTEN, None)
    if written is None:
        return
    for sentence in written.trouble:
        terminalreporter.write_line(sentence, red=True, bold=True)
    for sentence in written.notes:
        terminalreporter.write_line(sentence, yellow=True)
    if written.report is not None:
        terminalreporter.section("Result")
        for line in closing.lines(written.report, _files(written, config), paper.columns()):
            terminalreporter.write_line(line, bold=line.startswith("start here"))


def _baseline(config: pytest.Config) -> build.Report | None:
    """Read now what this run may overwrite; what cannot be used ends the run before it begins."""
    asked = config.getoption("--baseline", None)
    if asked is None:
        return None
    try:
        return reading.load(config.invocation_params.dir / asked)
    except reading.InvalidReport as error:
        raise pytest.UsageError(f"--baseline={asked} cannot be used: {error}") from None


def _place_junit(config: pytest.Config, written: _Written) -> None:
    """Move pytest's file to the report; without a report there is nothing to keep, and nothing to announce."""
    folder, writer = config.stash.get(JUNIT_FOLDER, None), config.stash.get(xml_key, None)
    if folder is None or writer is None:
        return
    config.pluginmanager.unregister(writer)  # else it announces the place that the file has left
    del config.stash[xml_key]
    made = folder / "junit.xml"
    if written.folder is None or not written.files or not made.exists():
        return
    try:
        write_whole(written.folder / "junit.xml", made.read_text(encoding="utf-8"))
        written.files.append("junit.xml")
    except CannotWrite as error:
        written.trouble.append(str(error))


def _files(written: _Written, config: pytest.Config) -> list[str]:
    """The first with its folder, the others beside it; nothing where there is no report."""
    if written.folder is None or not written.files:
        return []
    first, *others = written.files
    return [_shown(written.folder / first, config), *others]


def _shown(path: Path, config: pytest.Config) -> str:
    """As short as it can be from where pytest was started."""
    relative = os.path.relpath(path, config.invocation_params.dir)
    return str(path) if relative.startswith("..") else relative
