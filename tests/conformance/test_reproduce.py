"""The script of a broken claim shows the fault by itself; on the reference the same script shows none."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.checks import Description
from conformance.reproduce import script, scripts
from conformance.verdict import Result, Tier, Verdict
from impls.loading import load
from tests.conformance.conftest import ROOT

# A mutant, a claim that it breaks, the function at fault, the number of ranks. One for each text that needs ranks.
ON_RANKS = [
    ("ring_drops_the_remainder", "collectives.values.allreduce", "ring_allreduce", 3),
    ("ring_hangs_on_five_ranks", "collectives.values.allreduce", "ring_allreduce", 5),
    ("allgather_sends_all_it_has", "collectives.allgather.bytes", "ring_allgather", 3),
    ("tree_is_flat", "collectives.tree.steps", "tree_allreduce", 4),
    ("ddp_divides_by_two", "loop.mean", "DataParallel", 3),
    ("ddp_broadcasts_from_the_last_rank", "loop.construct-broadcast", "DataParallel", 2),
    ("ddp_reduces_twice", "strategies.ddp.traffic", "DataParallel", 2),
    ("zero1_keeps_its_first_learning_rate", "zero.equivalence", "ShardedOptimizer", 2),
    ("zero1_all_reduces_gradients", "zero.comm.1", "ShardedOptimizer", 2),
    ("fsdp_sums_without_dividing", "zero.equivalence", "fully_shard", 2),
    ("mp_never_unscales", "zero.equivalence", "MixedPrecision", 2),
    ("tp_mlp_no_backward_reduce", "strategies.tensor.equivalence", "ParallelMLP", 2),
    ("pipeline_never_divides", "pipeline.equivalence", "train_step", 2),
]
PLAIN = [
    ("bubble_1f1b_is_rounded", "pipeline.simulators.1f1b", "bubble_1f1b", 2),
    ("bubble_dualpipe_accepts_odd_sizes", "pipeline.simulators.dualpipe", "bubble_dualpipe", 2),
    ("gpipe_forgets_the_last_backward", "pipeline.gpipe.bubble", "gpipe", 2),
    ("one_f_one_b_is_gpipe", "pipeline.1f1b.memory", "one_f_one_b", 2),
    ("one_f_one_b_drains_in_between", "pipeline.1f1b.same-bubble", "one_f_one_b", 2),
    ("dualpipev_flushes_half_way", "pipeline.bubble-growth.dualpipev", "dualpipev", 2),
    ("partition_is_greedy", "strategies.pipeline.partition", "partition", 2),
    ("ring_time_sends_whole_tensors", "collectives.ring.use", "ring_time", 2),
    ("tensor_time_forgets_latency", "strategies.tensor.link", "tensor_parallel_time", 2),
]
MUTANTS = [*ON_RANKS, *PLAIN]
FP16 = "test_weights_are_the_rounded_ones_of_fp32_training[fp16-2-stage-mixed]"
CASES = {
    "pipeline.equivalence": "test_gradients_are_those_of_a_single_process[2-gpipe]",
    "collectives.values.allreduce": "test_every_rank_gets_the_sum[ring_allreduce]",
    "loop.mean": "test_gradients_of_drawn_parameters_are_the_mean[3]",
    "loop.construct-broadcast": "test_construction_gives_every_rank_the_parameters_of_rank_0[mlp-2]",
    "strategies.ddp.traffic": "test_gradients_travel_by_all_reduce_and_no_more_of_them_than_there_are[2]",
    "zero.comm.1": "test_zero_1_reduces_to_shards_and_gathers_them[2]",
    "zero.equivalence": "test_training_is_that_of_a_single_process[mlp-2-stage-1]",
    "strategies.tensor.equivalence": "test_integers_come_out_bit_for_bit[2-mlp]",
}
pytestmark = pytest.mark.timeout(600)
# torch is imported once, and each script runs in a fork of the process that has it; three at a time.
RUN_ALL = """
import contextlib, gc, os, runpy, signal, sys, traceback
import torch.distributed, torch.multiprocessing, torch._dynamo
gc.freeze()
def run(path):
    output = os.open(path + ".out", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(output, 1), os.dup2(output, 2)
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        print(end.code, flush=True)
        return bool(end.code)
running = set()
for path in [*sys.argv[1:], *[None] * 3]:
    if len(running) == 3 or path is None and running:
        pid, status = os.wait()
        running.remove(pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    if path and (pid := os.fork()) == 0:
        os.setpgid(0, 0)
        signal.alarm(200)
        os._exit(run(path) and 1)
    running |= {pid} if path else set()
"""


_load = functools.cache(load)


def _script(name: str, claim: str, of: str, size: int) -> str:
    """For a mutant, or for the reference."""
    impl = _load(name if name == "reference" else f"mutants/{name}")
    places = {key: where for block in impl.blocks for key, where in impl.provides(block).items()}
    is_mutant = name != "reference"
    result = Result(
        claim=claim,
        case=FP16 if of == "MixedPrecision" else CASES.get(claim, "test_case"),
        tier=Tier.CORE,
        impl="mine",
        verdict=Verdict.HANGS if "hangs" in name else Verdict.VIOLATED,
        data={"world_size": size},
    )
    description = Description(
        name="mine",
        spec="mine",
        path=str(impl.path),
        spellings={of: f"{of} ({name}.py:1)"} if is_mutant else places,
        bindings={of: impl.bindings(of)},
    )
    text = script(result, [of], description)
    assert text is not None
    return text


def _bucketed() -> str:
    """For a function with a size of its own, and functions around a step."""
    impl = _load(str(ROOT / "tests/examples/course_adapters.py:get_ddp_bucketed"))
    description = Description(
        name="mine",
        spec="mine",
        path=str(impl.path),
        spellings={"DataParallel": impl.provides("data_parallel")["DataParallel"]},
        bindings={"DataParallel": impl.bindings("DataParallel")},
    )
    result = Result(claim="loop.mean", case=CASES["loop.mean"], tier=Tier.CORE, impl="mine", verdict=Verdict.VIOLATED)
    text = script(result, ["DataParallel"], description)
    assert text is not None
    assert "bucket_size_mb=25.0" in text
    return text


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each script printed, and its exit status, by the name of the mutant; for the reference with ``right-``."""
    home = tmp_path_factory.mktemp("scripts")
    texts = {name: _script(name, *rest) for name, *rest in MUTANTS}
    texts["right-get_ddp_bucketed"] = _bucketed()
    texts |= {f"right-{name}": _script("reference", *rest) for name, *rest in MUTANTS if "hangs" not in name}
    for name, text in texts.items():
        (home / f"{name}.py").write_text(text, encoding="utf-8")
    paths = {name: home / f"{name}.py" for name in texts}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", RUN_ALL, *map(str, paths.values())], env=environment, cwd=home, check=True)
    return {name: Path(f"{path}.out").read_text(encoding="utf-8") for name, path in paths.items()}


@pytest.mark.parametrize("name", [name for name, *_ in MUTANTS])
def test_script_shows_the_fault(told, name):
    assert "WRONG, " in told[name], told[name]
    assert told[name].splitlines()[-1] != "False", "exit status"


@pytest.mark.parametrize("name", [*[name for name, *_ in MUTANTS if "hangs" not in name], "get_ddp_bucketed"])
def test_script_shows_nothing_on_the_reference(told, name):
    lines = told[f"right-{name}"].splitlines()
    assert "WRONG" not in told[f"right-{name}"]
    assert [line for line in lines if line.endswith(": right")], lines
    assert lines[-1] == "False", "exit status 0"


@pytest.mark.parametrize(("name", "claim", "of", "size"), MUTANTS, ids=lambda value: value if "_" in str(value) else "")
def test_script_has_thirty_lines_at_most_and_knows_no_lockstep(name, claim, of, size):
    text = _script(name, claim, of, size)
    assert len(text.splitlines()) <= 30
    assert not [line for line in text.splitlines() if "import" in line and ("impls" in line or "conformance" in line)]


def test_plainest_broken_case_of_a_claim_is_the_one_that_is_shown(tmp_path):
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    spellings = {"ring_allreduce": "my_ring (mine.py:7)"}
    description = Description(
        name="mine",
        spec="mine",
        path=str(tmp_path / "mine.py"),
        spellings=spellings,
        bindings={"ring_allreduce": {"x": "tensor"}},
    )
    results = [
        Result(
            claim="collectives.values.allreduce",
            case=f"test_every_rank_gets_the_sum[{case}]",
            tier=tier,
            impl="mine",
            verdict=Verdict.VIOLATED,
            data={"world_size": size},
        )
        for case, tier, size in [("odd", Tier.EXOTIC, 3), ("wide", Tier.CORE, 8), ("plain", Tier.CORE, 4)]
    ]
    found = scripts(results, [["ring_allreduce"]] * 3, {"mine": description})
    ((case, text),) = found.values()
    assert "plain" in case
    assert "['my_ring']" in text
    assert "STORE, FORK = 4," in text


@pytest.mark.parametrize(
    ("claim", "case", "spelling"),
    [
        ("collectives.agreement", "test_every_rank_gets_the_sum", "ring_allreduce (mine.py:1)"),
        ("collectives.values.allreduce", "test_any_dtype_shape_and_world_size", "ring_allreduce (mine.py:1)"),
        ("collectives.values.allreduce", "test_every_rank_gets_the_sum", "ring_allreduce (elsewhere.py:1)"),
        ("collectives.values.allreduce", "test_every_rank_gets_the_sum", "Communicator.ring (mine.py:1)"),
    ],
)
def test_what_a_script_cannot_show_has_none(tmp_path, claim, case, spelling):
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    spellings = {"ring_allreduce": spelling}
    description = Description(
        name="mine",
        spec="mine",
        path=str(tmp_path / "mine.py"),
        spellings=spellings,
        bindings={"ring_allreduce": {"x": "tensor"}},
    )
    result = Result(claim=claim, case=case, tier=Tier.CORE, impl="mine", verdict=Verdict.VIOLATED)
    assert script(result, ["ring_allreduce"], description) is None


@pytest.mark.parametrize(("verdict", "has_one"), [(Verdict.HANGS, True), (Verdict.HOLDS, False)])
def test_ranks_that_hang_are_shown_as_well(tmp_path, verdict, has_one):
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    description = Description(
        name="mine",
        spec="mine",
        path=str(tmp_path / "mine.py"),
        spellings={"all_reduce": "all_reduce (mine.py:1)"},
        bindings={"all_reduce": {"tensor": "tensor"}},
    )
    case = "test_every_rank_gets_the_sum[all_reduce]"
    result = Result(claim="collectives.values.allreduce", case=case, tier=Tier.CORE, impl="mine", verdict=verdict)
    assert (script(result, ["all_reduce"], description) is not None) is has_one


def test_call_has_the_names_that_the_hand_in_has_for_its_arguments(tmp_path):
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    description = Description(
        name="mine",
        spec="mine",
        path=str(tmp_path / "mine.py"),
        spellings={"bubble_1f1b": "idle (mine.py:1)"},
        bindings={"bubble_1f1b": {"P": "num_stages", "M": "num_microbatches", "digits": ""}},
    )
    result = Result(
        claim="pipeline.simulators.1f1b", case="case", tier=Tier.CORE, impl="mine", verdict=Verdict.VIOLATED
    )
    text = script(result, ["bubble_1f1b"], description)
    assert text is not None
    assert "ours(P=P, M=M)" in text


@pytest.mark.parametrize("bindings", [{}, {"optimizer": "optimizer"}, {"module": "module", "lr": "lr"}])
def test_what_takes_something_else_has_no_script(tmp_path, bindings):
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    description = Description(
        name="mine",
        spec="mine",
        path=str(tmp_path / "mine.py"),
        spellings={"ShardedOptimizer": "Zero (mine.py:1)"},
        bindings={"ShardedOptimizer": bindings},
    )
    result = Result(
        claim="zero.equivalence", case=CASES["zero.equivalence"], tier=Tier.CORE, impl="mine", verdict=Verdict.VIOLATED
    )
    assert script(result, ["ShardedOptimizer"], description) is None


def test_fault_beyond_the_plainest_use_has_no_script(tmp_path):
    """Two backward passes before one finish: a script with one would say that all is right."""
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    description = Description(
        name="mine",
        spec="mine",
        path=str(tmp_path / "mine.py"),
        spellings={"DataParallel": "DDP (mine.py:1)"},
        bindings={"DataParallel": {"module": "module"}},
    )
    texts = [
        script(
            Result(claim="loop.mean", case=CASES["loop.mean"], tier=tier, impl="mine", verdict=Verdict.VIOLATED),
            ["DataParallel"],
            description,
        )
        for tier in (Tier.CORE, Tier.CONTRACT)
    ]
    assert [text is None for text in texts] == [False, True]
