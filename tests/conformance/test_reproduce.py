"""The script of a broken claim shows the fault by itself; on the reference the same script shows none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.checks import Description
from conformance.reproduce import script, scripts
from conformance.verdict import Result, Tier, Verdict
from tests.conformance.conftest import ROOT

MUTANTS = [
    ("ddp_sums_without_dividing", "loop.mean", "DataParallel"),
    ("ddp_divides_by_two", "loop.mean", "DataParallel"),
    ("ddp_broadcasts_nothing", "loop.construct-broadcast", "DataParallel"),
    ("ring_drops_the_remainder", "collectives.values.allreduce", "ring_allreduce"),
    ("ring_wrong_on_odd_worlds", "collectives.values.allreduce", "ring_allreduce"),
    ("tree_forgets_ranks_beyond_a_power_of_two", "collectives.values.allreduce", "tree_allreduce"),
    ("allgather_begins_with_its_own", "collectives.values.allgather", "ring_allgather"),
    ("reduce_scatter_is_shifted", "collectives.values.reduce-scatter", "ring_reduce_scatter"),
    ("broadcast_knows_only_root_zero", "collectives.values.broadcast", "tree_broadcast"),
    ("zero1_sums_without_dividing", "zero.equivalence", "ShardedOptimizer"),
    ("zero1_keeps_its_first_learning_rate", "zero.equivalence", "ShardedOptimizer"),
    ("fsdp_sums_without_dividing", "zero.equivalence", "fully_shard"),
]
REFERENCE = {
    "ring_allreduce": "collectives.py",
    "ring_allgather": "collectives.py",
    "ring_reduce_scatter": "collectives.py",
    "DataParallel": "data_parallel.py",
    "ShardedOptimizer": "zero1.py",
    "fully_shard": "fsdp.py",
}
BUCKETED = ROOT / "tests/examples/course_adapters.py"  # a function with a size of its own, and functions around a step
# torch is imported once, six scripts run at a time, and each leaves what it prints beside itself.
pytestmark = pytest.mark.timeout(600)  # eighteen times three processes, on a loaded machine
RUN_ALL = """
import contextlib, gc, os, runpy, signal, sys
import torch.distributed, torch.multiprocessing
gc.freeze()
running = []
for path in [*sys.argv[1:], *[None] * 6]:
    if len(running) == 6 or path is None and running:
        os.waitpid(running[0], 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pop(0), signal.SIGKILL)
    if path and (pid := os.fork()) == 0:
        os.setpgid(0, 0)
        signal.alarm(200)
        output = os.open(path + ".out", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(output, 1), os.dup2(output, 2)
        runpy.run_path(path, run_name="__main__")
        os._exit(0)
    running += [pid] if path else []
"""


def _script(path: Path, claim: str, name: str, size: int = 3, spelling: str = "") -> str:
    result = Result(
        claim=claim, case="case", tier=Tier.CORE, impl="mine", verdict=Verdict.VIOLATED, data={"world_size": size}
    )
    told = f"{spelling or name} ({path.name}:1)"
    description = Description(name="mine", spec="mine", path=str(path), spellings={name: told})
    text = script(result, [name], description)
    assert text is not None
    return text


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each script printed, by the name of the mutant, or of the function of the reference."""
    home = tmp_path_factory.mktemp("scripts")
    texts = {name: _script(ROOT / f"impls/mutants/{name}.py", claim, of) for name, claim, of in MUTANTS}
    claims = {of: claim for _, claim, of in MUTANTS}
    texts["get_ddp_bucketed"] = _script(BUCKETED, "loop.mean", "DataParallel", spelling="get_ddp_bucketed")
    texts |= {of: _script(ROOT / "impls/reference" / file, claims[of], of) for of, file in REFERENCE.items()}
    for name, text in texts.items():
        (home / f"{name}.py").write_text(text, encoding="utf-8")
    paths = {name: home / f"{name}.py" for name in texts}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", RUN_ALL, *map(str, paths.values())], env=environment, cwd=home, check=True)
    return {name: Path(f"{path}.out").read_text(encoding="utf-8") for name, path in paths.items()}


@pytest.mark.parametrize("name", [name for name, _, _ in MUTANTS])
def test_script_shows_the_fault(told, name):
    assert "WRONG, expected" in told[name], told[name]


@pytest.mark.parametrize("name", [*REFERENCE, "get_ddp_bucketed"])
def test_script_shows_nothing_on_the_reference(told, name):
    assert "WRONG" not in told[name]
    assert told[name].count(": right\n") >= 3, told[name]


@pytest.mark.parametrize(("name", "claim", "of"), MUTANTS, ids=lambda value: value if "_" in value else "")
def test_script_has_thirty_lines_at_most_and_knows_no_lockstep(name, claim, of):
    text = _script(ROOT / f"impls/mutants/{name}.py", claim, of)
    assert len(text.splitlines()) <= 30
    assert not [line for line in text.splitlines() if "import" in line and ("impls" in line or "conformance" in line)]


def test_plainest_broken_case_of_a_claim_is_the_one_that_is_shown(tmp_path):
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    spellings = {"ring_allreduce": "my_ring (mine.py:7)"}
    description = Description(name="mine", spec="mine", path=str(tmp_path / "mine.py"), spellings=spellings)
    results = [
        Result(
            claim="collectives.values.allreduce",
            case=case,
            tier=tier,
            impl="mine",
            verdict=Verdict.VIOLATED,
            data={"world_size": size},
        )
        for case, tier, size in [("odd", Tier.EXOTIC, 3), ("wide", Tier.CORE, 8), ("plain", Tier.CORE, 4)]
    ]
    found = scripts(results, [["ring_allreduce"]] * 3, {"mine": description})
    ((case, text),) = found.values()
    assert case == "plain"
    assert "'my_ring', 4" in text


@pytest.mark.parametrize(
    ("claim", "verdict", "spelling"),
    [
        ("collectives.ring.bytes", Verdict.VIOLATED, "ring_allreduce (mine.py:1)"),
        ("collectives.values.allreduce", Verdict.HANGS, "ring_allreduce (mine.py:1)"),
        ("collectives.values.allreduce", Verdict.VIOLATED, "ring_allreduce (elsewhere.py:1)"),
        ("collectives.values.allreduce", Verdict.VIOLATED, "Communicator.ring (mine.py:1)"),
    ],
)
def test_what_a_script_cannot_show_has_none(tmp_path, claim, verdict, spelling):
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    spellings = {"ring_allreduce": spelling}
    description = Description(name="mine", spec="mine", path=str(tmp_path / "mine.py"), spellings=spellings)
    result = Result(claim=claim, case="case", tier=Tier.CORE, impl="mine", verdict=verdict)
    assert script(result, ["ring_allreduce"], description) is None


def test_fault_beyond_the_plainest_use_has_no_script(tmp_path):
    """Two backward passes before one finish: a script with one would say that all is right."""
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    spellings = {"DataParallel": "DDP (mine.py:1)"}
    description = Description(name="mine", spec="mine", path=str(tmp_path / "mine.py"), spellings=spellings)
    result = Result(claim="loop.mean", case="case", tier=Tier.CONTRACT, impl="mine", verdict=Verdict.VIOLATED)
    assert script(result, ["DataParallel"], description) is None
