"""Runs the plug-in on tiny check files in a process of its own, and gives back the record that it handed over."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fixtures.world.server import ADDRESS_VARIABLE

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
import json
from conformance.verdict import to_json
pytest_plugins = ["fixtures.plugin", "conformance.plugin"]

def pytest_lockstep_record(config, record, folder):
    (config.rootpath / "record.json").write_text(json.dumps(to_json(record)))
"""

INI = """
[pytest]
pythonpath = .
strict = true
timeout = 120
filterwarnings =
    error
"""


@dataclasses.dataclass(frozen=True)
class Finished:
    """One run of pytest: its exit status, what it printed, and the record, if it made one."""

    status: int
    text: str
    record: dict[str, Any] | None

    def verdict(self, case: str, impl: str | None = None) -> str:
        """The verdict of the one result of this case."""
        return str(self.result(case, impl)["verdict"])

    def result(self, case: str, impl: str | None = None) -> dict[str, Any]:
        """The one result of this case."""
        assert self.record is not None, self.text
        (found,) = [r for r in self.record["results"] if r["case"] == case and impl in (None, r["impl"])]
        return dict(found)


@dataclasses.dataclass(frozen=True)
class Place:
    """A folder with check files in which pytest runs with Lockstep's plug-ins."""

    folder: Path
    has_own_server: bool = False  # as a run that a user starts has; else that of the run that these tests are in

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]

    @property
    def environment(self) -> dict[str, str]:
        hidden = ("PYTEST", "LOCKSTEP", "TOX")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(hidden) or (name == ADDRESS_VARIABLE and not self.has_own_server)
        }
        return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start pytest in a process group of its own."""
        return subprocess.Popen(
            self.command(*args),
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def kill(self, process: subprocess.Popen[str]) -> None:
        """End what is left of a run that was started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def run(self, *args: str) -> Finished:
        """Run pytest with these arguments to its end."""
        (self.folder / "record.json").unlink(missing_ok=True)
        process = self.start(*args)
        try:
            text, _ = process.communicate(timeout=200)
        finally:
            self.kill(process)
        return self.finished(process.returncode, text)

    def finished(self, status: int, text: str) -> Finished:
        """Put a run that has ended together with the record that it left."""
        path = self.folder / "record.json"
        return Finished(status, text, json.loads(path.read_text()) if path.exists() else None)


@pytest.fixture(scope="session")
def make_place(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Place]:
    """Make a folder with these files, beside the configuration that the plug-ins need."""

    def make(files: Mapping[str, str], *, has_own_server: bool = False) -> Place:
        folder = tmp_path_factory.mktemp("place")
        for name, text in {"conftest.py": CONFTEST, "tox.ini": INI, **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Place(folder, has_own_server)

    return make
