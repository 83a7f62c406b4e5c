"""The pytest plug-in: at the end of a run, write the report and say where it lies.

It knows the record that the checks hand over, and nothing of how it came about. A report that cannot be written costs
the run its exit status 0, never its verdicts.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import uuid
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.junitxml import xml_key  # pytest offers no public way to the JUnit writer

from conformance.verdict import Record
from reports import build, html, traces
from reports.files import CannotWrite, write_together, write_whole


@dataclasses.dataclass(slots=True)
class _Written:
    """What became of the report of this run."""

    folder: Path | None = None
    files: list[str] = dataclasses.field(default_factory=list)
    trouble: list[str] = dataclasses.field(default_factory=list)


WRITTEN = pytest.StashKey[_Written]()
JUNIT_FOLDER = pytest.StashKey[Path]()  # where pytest writes junit.xml until the report folder is known


@pytest.hookimpl(tryfirst=True)  # before the JUnit writer looks at its option
def pytest_configure(config: pytest.Config) -> None:
    """Have pytest write JUnit XML also when the user asked for none."""
    if hasattr(config, "workerinput"):
        return
    config.stash[WRITTEN] = _Written()
    if getattr(config.option, "xmlpath", "") is None and not config.option.collectonly:
        # Only a name: pytest makes the folder when it writes, so that a killed run leaves none.
        config.stash[JUNIT_FOLDER] = Path(tempfile.gettempdir()) / f"lockstep-junit-{uuid.uuid4().hex}"
        config.option.xmlpath = str(config.stash[JUNIT_FOLDER] / "junit.xml")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    if (folder := config.stash.get(JUNIT_FOLDER, None)) is not None:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_lockstep_record(config: pytest.Config, record: Record, folder: Path) -> None:
    """Write report.json, report.html and the traces into ``folder``; what goes wrong is told at the end."""
    written = config.stash[WRITTEN]
    written.folder = folder
    record, timelines = traces.separate(record)
    report = build.build(record)
    try:
        build.validate(report)
    except build.InvalidReport as error:
        written.trouble.append(f"the report breaks its own rules, a fault of the suite: {error}")
    texts = {"report.json": build.dumps(report)}
    try:
        texts = {"report.html": html.render(report), **texts}
    except Exception as error:  # a page that cannot be drawn must not cost the results
        written.trouble.append(f"report.html was not drawn, a fault of the suite: {type(error).__name__}: {error}")
    try:
        files = texts | {f"{traces.FOLDER}/{name}": text for name, text in timelines.items()}
        write_together({folder / name: text for name, text in files.items()})
    except CannotWrite as error:
        written.trouble.append(f"there is no report of this run: {error}. Choose another folder: --report=FOLDER")
        return
    written.files = list(texts)
    if timelines:
        written.files.append(f"{traces.FOLDER}/ ({len(timelines)})")
    traces.remove_old(folder, keep=timelines)


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
    """Say where the report lies, or why there is none."""
    yield
    written = config.stash.get(WRITTEN, None)
    if written is None:
        return
    for sentence in written.trouble:
        terminalreporter.write_line(sentence, red=True, bold=True)
    if written.folder is not None and written.files:
        first, *others = written.files
        beside = f" (beside it: {', '.join(others)})" if others else ""
        terminalreporter.write_line(f"report: {_shown(written.folder / first, config)}{beside}")


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


def _shown(path: Path, config: pytest.Config) -> str:
    """As short as it can be from where pytest was started."""
    relative = os.path.relpath(path, config.invocation_params.dir)
    return str(path) if relative.startswith("..") else relative
