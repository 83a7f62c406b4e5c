"""Signals as a terminal leaves them, and which worker runs which tests."""

from __future__ import annotations

import signal
from typing import Any

import pytest

SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)

# The tests of each of these modules look at what one long run left, which every worker that meets one would make anew.
# (The marker xdist_group says the same, and pytest-xdist 3.8.0 does not heed it under pytest 9.2.)
SHARED_RUNS = frozenset(
    f"tests/{name}.py"
    for name in (
        "conformance/grading/test_graded_run",
        "conformance/hints/test_hints",
        "conformance/test_advice_constant",
        "conformance/test_no_false_alarm",
        "conformance/test_own_part",
        "conformance/test_pipeline_forms",
        "conformance/test_reproduce",
        "conformance/test_root_causes",
        "conformance/test_stories",
        "conformance/test_tensor_forms",
        "conformance/test_trickery",
        "conformance/test_verdicts_of_a_run",
        "conformance/test_zero_forms",
        "doctor/test_diagnoses",
        "reports/test_plugin",
        "variants/test_advice",
        "variants/test_pipeline_forms",
        "variants/test_pipeline_messages",
        "variants/test_variants",
    )
)


def pytest_configure() -> None:
    """Under nohup, or in the background of a script, some signals arrive ignored: tests that send one would wait."""
    for number in SIGNALS:  # children inherit what is ignored
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker the next test; those that share a run stay together, and come first, as they take longest."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            return module if module in SHARED_RUNS else nodeid

    return Scheduler(config, log)
