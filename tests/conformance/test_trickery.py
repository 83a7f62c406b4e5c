"""Ordinary trickery never raises a score: hand-ins that are wrong and pretend, beside one that is right."""

from __future__ import annotations

import textwrap

import pytest

PROGRAMS = """
import torch

def total(ctx):
    return ctx.impl.call("all_reduce", tensor=torch.ones(3), group=None)
"""

CHECKS = """
import programs, pytest, torch
from conformance.checks import claim

@claim("collectives.values.allreduce", provides=["all_reduce"])
@pytest.mark.parametrize("world_size", [1, 2])
def test_sum(subject, judge, world_size):
    for value in subject.run(programs.total, world_size).values:
        judge.expect(value, torch.full((3,), float(world_size)), message="sum")
"""

RUBRIC = """
name = "One"
assigned = ["all_reduce"]
[[weight]]
claims = ["collectives.values.allreduce"]
core = 4
"""

WRONG = """
import os, sys, torch
import torch.distributed as dist

def all_reduce(tensor):
    return tensor * 17
"""

# What is beside the function, at import; every one of these is wrong all the same.
AT_IMPORT = {
    "prints_verdicts": """
        print("2 passed in 0.01s")
        sys.stdout.write('{"kind": "result", "verdict": "holds"}\\n' * 3)
        sys.stderr.write("PASSED HOLDS 4 of 4 points\\n")
        """,
    "exits_with_0": "sys.exit(0)",
    "ends_with_0": "os._exit(0)",
    "patches_torch": """
        torch.equal = torch.allclose = lambda *_, **__: True
        torch.Tensor.__eq__ = lambda *_: torch.ones(3, dtype=torch.bool)
        torch.Tensor.__ne__ = lambda *_: torch.zeros(3, dtype=torch.bool)
        torch.full = lambda *_: torch.ones(3)
        """,
    "patches_the_judge": """
        import conformance.expect, conformance.judge, conformance.verdict
        conformance.judge.Judge.that = lambda *_, **__: None
        conformance.expect.same = lambda *_: conformance.expect.Comparison(matches=True, expected="1", observed="1")
        conformance.verdict.Verdict.VIOLATED = conformance.verdict.Verdict.HOLDS
        """,
    "patches_pytest": """
        import pytest
        pytest.fail = lambda *_, **__: None
        pytest.ExitCode.TESTS_FAILED = pytest.ExitCode.OK
        raise pytest.skip.Exception("nothing to see here")
        """,
    "writes_reports": """
        import glob, json, pathlib
        forged = {"score": {"writes_reports.py": {"points": 4, "out_of": 4}}, "results": []}
        places = {pathlib.Path.cwd(), pathlib.Path(__file__).parent}
        for parent in glob.glob("/proc/[0-9]*/cwd"):
            try:
                if "writes_reports.py" in open(f"{parent[:-3]}cmdline").read():  # this run, not a neighbour's
                    places.add(pathlib.Path(os.readlink(parent)))
            except OSError:
                pass
        for place in places:
            for name in ("record.json", "report.json", "score.json", "graded.jsonl"):
                try:
                    (place / name).write_text(json.dumps(forged))
                except OSError:
                    pass
        """,
    "changes_the_environment": """
        os.environ.update(PYTEST_ADDOPTS="--collect-only", PYTHONOPTIMIZE="2", LOCKSTEP_SERVER="/nowhere")
        os.chdir("/")
        """,
    "forks": """
        if os.fork() == 0:
            os._exit(0)
        """,
    "declares_that_it_deviates": """
        MANIFEST = {"deviates": {"collectives.values.allreduce": {"reason": "so it is", "source": "me"}}}
        """,
    "declares_that_it_refuses": """
        MANIFEST = {"refuses": {"collectives.values.allreduce": {"reason": "not today", "source": "me"}}}
        def all_reduce(tensor):
            raise ValueError("not today")
        """,
    "is_not_there": """
        def all_reduce(tensor):
            raise NotImplementedError
        """,
    "answers_for_the_rank": """
        def all_reduce(tensor):
            for descriptor in range(3, 64):
                try:
                    os.write(descriptor, b'{"value": 2.0}\\n')
                except OSError:
                    pass
            return tensor * 17
        """,
    "looks_equal": """
        class Equal(torch.Tensor):
            def __eq__(self, other): return torch.ones(3, dtype=torch.bool)
            def __ne__(self, other): return torch.zeros(3, dtype=torch.bool)
        def all_reduce(tensor):
            return tensor.mul(17).as_subclass(Equal)
        """,
}

# Files that lie beside a hand-in that is a folder.
BESIDE = {
    "conftest.py": "import pytest\ndef pytest_runtest_call(item):\n    item.obj = lambda: None\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "tox.ini": "[pytest]\ntestpaths = nowhere\n",
    "sitecustomize.py": "import os\nos._exit(0)\n",
    "torch.py": "def ones(*_): return [2.0] * 3\n",
    "conformance.py": "raise SystemExit(0)\n",
    "programs.py": "def total(ctx): return 1.0\n",
    "test_checks.py": "def test_nothing(): pass\n",
}

GOOD = """
import torch.distributed as dist
def all_reduce(tensor):
    dist.all_reduce(tensor)
    return tensor
"""


@pytest.fixture(scope="module")
def done(make_place):
    single = {f"{name}.py": WRONG + textwrap.dedent(text) for name, text in AT_IMPORT.items()}
    beside = {f"beside/{name}": text for name, text in BESIDE.items()}
    files = {"programs.py": PROGRAMS, "test_checks.py": CHECKS, "rubric.toml": RUBRIC, "good.py": GOOD}
    place = make_place({**files, **single, **beside, "beside/mine.py": WRONG})
    impls = [*single, "beside", "good.py"]
    return place.run("test_checks.py", "--rubric=rubric.toml", *[f"--impl={name}" for name in impls])


@pytest.mark.parametrize("impl", [*(f"{name}.py" for name in AT_IMPORT), "beside"])
def test_trick_earns_no_points(done, impl):
    assert done.record is not None, done.text
    score = done.record["score"][impl]
    assert (score["points"], score["open"], score["out_of"]) == (0, 0, 4)


def test_the_honest_one_beside_them_has_all_its_points(done):
    assert done.record["score"]["good.py"]["points"] == 4
    assert done.status == 1


def test_every_check_of_everyone_is_in_the_record(done):
    assert done.record["collected"] == len(done.record["results"]) == 2 * (len(AT_IMPORT) + 2)
