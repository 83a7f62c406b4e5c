"""The script of a broken claim shows the fault by itself; on what is right the same script shows none."""

from __future__ import annotations

import dataclasses
import functools
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.checks import Description
from conformance.describing import filled, found_in
from conformance.reproduce import MAX_LINES, script, scripts
from conformance.scripts.running import outputs
from conformance.verdict import Result, Tier, Verdict
from impls.loading import load
from tests.conformance.conftest import ROOT

pytestmark = pytest.mark.timeout(900)
EXAMPLES = ROOT / "tests/examples"
SUMS = "collectives.values.allreduce"
SUM = "test_every_rank_gets_the_sum[ring_allreduce]"
SINGLE = "test_training_is_that_of_a_single_process[mlp-2-stage-1]"
FP16 = "test_weights_are_the_rounded_ones_of_fp32_training[fp16-2-stage-mixed]"
GRADIENTS = "test_gradients_of_drawn_parameters_are_the_mean[3]"
CURED = "test_the_fault_is_shown_diagnosed_and_cured"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Broken:
    """What a mutant breaks: a claim by one name of the contract, in a case with so many ranks."""

    mutant: str
    claim: str
    name: str
    case: str = "test_case"
    size: int = 2
    verdict: Verdict = Verdict.VIOLATED
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)


CONFIGURATION = {
    **{"num_parameters": 2e9, "num_layers": 32, "hidden": 2048, "tokens": 8192, "num_microbatches": 8},
    **{"activation_bytes": 1e9, "device_bytes": 24e9, "world_size": 8, "ranks_per_node": 8, "flops": 2e14},
    **{"latency_s": 2e-6, "bandwidth": 4e11, "between_latency_s": 5e-6, "between_bandwidth": 5e10},
    "all_to_all_share": 0.0,
}
# One for each text. A row: the mutant, the claim, the name, and what is not as usual.
BROKEN = [
    Broken(mutant=mutant, claim=claim, name=name, **more)
    for mutant, claim, name, more in (
        ("ring_drops_the_remainder", SUMS, "ring_allreduce", {"case": SUM, "size": 3}),
        (
            "ring_hangs_on_five_ranks",
            SUMS,
            "ring_allreduce",
            {"case": SUM, "size": 5, "verdict": Verdict.HANGS},
        ),
        ("allgather_sends_all_it_has", "collectives.allgather.bytes", "ring_allgather", {"size": 3}),
        ("tree_is_flat", "collectives.tree.steps", "tree_allreduce", {"size": 4}),
        ("queue_mesh_mixes_senders", "collectives.queue-mesh", "queue_mesh", {"case": "test_letters"}),
        ("num_stages_of_eight", "defaults.num-stages", "NUM_STAGES", {}),
        ("ddp_fills_one_bucket", "defaults.bucket", "DataParallel", {}),
        ("ddp_divides_by_two", "loop.mean", "DataParallel", {"case": GRADIENTS, "size": 3}),
        ("average_gradients_divides_a_copy", "calls.div", "average_gradients", {"case": "test_mlp"}),
        ("ddp_broadcasts_from_the_last_rank", "loop.construct-broadcast", "DataParallel", {}),
        ("worker_does_not_seed", "loop.same-init", "train", {}),
        ("batch_slice_forgets_the_rank", "loop.slices", "batch_slice", {}),
        ("init_group_counts_from_the_end", "calls.init-gloo", "init_group", {}),
        ("shard_gradients_averages", "calls.reduce-scatter", "shard_gradients", {"case": "test_own_part"}),
        ("ddp_reduces_twice", "strategies.ddp.traffic", "DataParallel", {"case": "travel_by_all_reduce"}),
        ("zero1_keeps_its_first_learning_rate", "zero.equivalence", "ShardedOptimizer", {"case": SINGLE}),
        ("zero1_all_reduces_gradients", "zero.comm.1", "ShardedOptimizer", {}),
        ("fsdp_sums_without_dividing", "zero.equivalence", "fully_shard", {"case": SINGLE}),
        ("fsdp_all_reduces_gradients", "strategies.fsdp.traffic", "fully_shard", {}),
        ("fsdp_keeps_whole_gradients", "zero.memory.3", "fully_shard", {}),
        ("mp_never_unscales", "zero.equivalence", "MixedPrecision", {"case": FP16}),
        ("tp_mlp_no_backward_reduce", "strategies.tensor.equivalence", "ParallelMLP", {"case": "test_real_numbers"}),
        ("tp_reduces_thrice_backward", "strategies.tensor.traffic", "ParallelAttention", {}),
        ("tp_keeps_the_whole", "strategies.tensor.memory", "ColumnParallelLinear", {}),
        (
            "pipeline_never_divides",
            "pipeline.equivalence",
            "train_step",
            {"case": "test_gradients_are_those_of_a_single_process[2-zbv]"},
        ),
        ("cure_broadcasts_nothing", "trouble.missing-broadcast", "cure_missing_broadcast", {"case": CURED}),
        ("cure_accumulation_never_reduces", "trouble.slow-accumulation", "cure_slow_accumulation", {"case": CURED}),
        ("cure_does_not_shuffle", "trouble.shared-shuffle-seed", "cure_shared_shuffle_seed", {"case": CURED}),
        ("cure_70b_stays_on_eight_ranks", "trouble.fsdp-70b-over-80gb", "cure_fsdp_70b_over_80gb", {"case": CURED}),
        (
            "advise_forgets_optimizer_state",
            "choose.ddp",
            "advise",
            {"case": "test_the_optimizers_states_count_as_well", "data": {"configuration": CONFIGURATION}},
        ),
        ("bubble_1f1b_is_rounded", "pipeline.simulators.1f1b", "bubble_1f1b", {}),
        ("bubble_dualpipe_accepts_odd_sizes", "pipeline.simulators.dualpipe", "bubble_dualpipe", {}),
        ("gpipe_forgets_the_last_backward", "pipeline.gpipe.bubble", "gpipe", {}),
        ("one_f_one_b_is_gpipe", "pipeline.1f1b.memory", "one_f_one_b", {}),
        ("dualpipev_flushes_half_way", "pipeline.bubble-growth.dualpipev", "dualpipev", {}),
        ("dualpipev_pairs_half", "pipeline.overlap.dualpipev", "dualpipev", {"case": "test_pairs"}),
        ("partition_is_greedy", "strategies.pipeline.partition", "partition", {}),
        ("ring_time_sends_whole_tensors", "collectives.ring.use", "ring_time", {}),
        ("tensor_time_forgets_latency", "strategies.tensor.link", "tensor_parallel_time", {}),
    )
]
HANGING = "ring_hangs_on_five_ranks"

# Hand-ins that are right, in forms of their own: what is asked for, the claim, the name and the case.
RIGHT = {
    "method of a communicator": ("communicator.py", SUMS, "all_reduce", SUM),
    "mpi4py's names and arrays": ("mpi_arrays.py", SUMS, "ring_allreduce", SUM),
    "stub": ("needs_triton.py", "loop.construct-broadcast", "DataParallel", "test_case"),
    "device": ("cuda_ddp.py?device=cpu", "loop.construct-broadcast", "DataParallel", "test_case"),
    "table beside it": ("odd_names.py?adapters=odd_names.toml", SUMS, "ring_allreduce", SUM),
    "mean": (
        "sum_that_averages.py?adapters=sum_that_averages.toml",
        SUMS,
        "all_reduce",
        SUM,
    ),
    "package": ("lib", "pipeline.simulators.1f1b", "bubble_1f1b", "test_case"),
    "functions around a step": ("course_adapters.py:get_ddp_bucketed", "loop.mean", "DataParallel", GRADIENTS),
    "table of functions": ("table.py", "pipeline.simulators.1f1b", "bubble_1f1b", "test_case"),
    "neighbours": ("relative", "pipeline.simulators.1f1b", "bubble_1f1b", "test_case"),
    "state": ("state.py", SUMS, "all_reduce", SUM),
}
IDLE = """
def bubble_1f1b(P, M):
    if P < 1 or M < 1:
        raise ValueError
    return (P - 1) / (M + P - 1)
"""
STATE = """
import torch.distributed as dist

GROUP = []

def set_process_group(group):
    GROUP.append(group)

def all_reduce(tensor):
    dist.all_reduce(tensor, group=GROUP[0])
    return tensor
"""
WRITTEN = {  # files that the examples lack
    "table.py": IDLE.replace("bubble_1f1b", "part") + "\nadapters = {'bubble_1f1b': lambda P, M: part(P, M)}\n",
    "relative/mine.py": "from .other import part\n\ndef bubble_1f1b(P, M):\n    return part(P, M)\n",
    "relative/other.py": IDLE.replace("bubble_1f1b", "part"),
    "lib/__init__.py": "",
    "lib/mine.py": "from lib.parts import part\n\ndef bubble_1f1b(P, M):\n    return part(P, M)\n",
    "lib/parts.py": IDLE.replace("bubble_1f1b", "part"),
    "state.py": STATE,
}

_load = functools.cache(load)


@functools.cache
def _described(spec: str) -> Description:
    impl = _load(spec)
    return filled(Description(name=spec, spec=spec, path=str(impl.path)), found_in(impl))


def _result(claim: str, case: str = "test_case", **more: Any) -> Result:
    return Result(
        **{"claim": claim, "case": case, "tier": Tier.CORE, "impl": "mine", "verdict": Verdict.VIOLATED} | more
    )


def _text(broken: Broken, of: str) -> str:
    """The script of a mutant, or of the reference in the same case."""
    data = {"world_size": broken.size, **broken.data}
    result = _result(broken.claim, broken.case, verdict=broken.verdict, data=data)
    text = script(result, [broken.name], _described(of))
    assert text is not None, broken
    return text


def _written(tmp_path: Path, source: str) -> Description:
    """The description of a file."""
    path = tmp_path / "mine.py"
    path.write_text(source, encoding="utf-8")
    return _described(str(path))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each script printed, by the name of the mutant, or the form of the hand-in; of the reference ``right-``."""
    home = tmp_path_factory.mktemp("scripts")
    hand_ins = tmp_path_factory.mktemp("hand-ins")
    shutil.copytree(EXAMPLES, hand_ins, dirs_exist_ok=True)
    for name, source in WRITTEN.items():
        (hand_ins / name).parent.mkdir(exist_ok=True)
        (hand_ins / name).write_text(source, encoding="utf-8")
    texts = {broken.mutant: _text(broken, f"mutants/{broken.mutant}") for broken in BROKEN}
    texts |= {f"right-{one.mutant}": _text(one, "reference") for one in BROKEN if one.mutant != HANGING}
    for form, (spec, claim, name, case) in RIGHT.items():
        asked = f"{hand_ins}/{spec}".replace("adapters=", f"adapters={hand_ins}/")
        text = script(_result(claim, case, data={"world_size": 3}), [name], _described(asked))
        assert text is not None, form
        texts[form] = text
    paths = {name: home / f"{number}.py" for number, name in enumerate(texts)}
    for name, path in paths.items():
        path.write_text(texts[name], encoding="utf-8")
    printed = outputs(list(paths.values()))
    return {name: printed[path] for name, path in paths.items()}


@pytest.mark.parametrize("name", [broken.mutant for broken in BROKEN])
def test_script_shows_the_fault(told, name):
    assert "WRONG, " in told[name], told[name]
    assert told[name].splitlines()[-1] == "exit status 1"


@pytest.mark.parametrize("name", [*(f"right-{one.mutant}" for one in BROKEN if one.mutant != HANGING), *RIGHT])
def test_script_shows_nothing_on_what_is_right(told, name):
    assert "WRONG" not in told[name]
    assert re.search(r"\b[1-9]\d* right, 0 wrong\n", told[name]), told[name]
    assert told[name].splitlines()[-1] == "exit status 0"


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.mutant)
def test_script_tells_its_fault_in_a_few_lines(told, broken):
    """Two of each rank, of which there are five at most, and one more of those that did not come back."""
    assert len(told[broken.mutant].splitlines()) <= 12, told[broken.mutant]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.mutant)
def test_script_has_thirty_lines_at_most_and_knows_no_lockstep(broken):
    lines = _text(broken, f"mutants/{broken.mutant}").splitlines()
    assert len(lines) <= MAX_LINES
    assert not [line for line in lines if "import" in line and ("impls" in line or "conformance" in line)]


def test_plainest_broken_case_of_a_claim_is_the_one_that_is_shown(tmp_path):
    description = _written(
        tmp_path, "def ring_allreduce(mesh, x): ...\n\nadapters = {'ring_allreduce': lambda mesh, x: x}\n"
    )
    results = [
        _result(
            SUMS,
            f"test_every_rank_gets_the_sum[{case}]",
            tier=tier,
            data={"world_size": size},
        )
        for case, tier, size in [("odd", Tier.EXOTIC, 3), ("wide", Tier.CORE, 8), ("plain", Tier.CORE, 4)]
    ]
    ((case, text),) = scripts(results, [["ring_allreduce"]] * 3, {"mine": description}).values()
    assert "plain" in case
    assert "[], [], 4, tempfile.mktemp()" in text
    assert "['adapters']['ring_allreduce']" in text


RING = "def ring_allreduce(mesh, x):\n    return x\n"
NONE = {  # what a script cannot show has none: the source, the claim, the name of the contract, the case
    "claim without a line": (RING, "loop.rows", "ring_allreduce", SUM),
    "case beyond plain use": (
        RING,
        SUMS,
        "ring_allreduce",
        "test_sum_is_over_the_group_only",
    ),
    "name that is not there": (RING, SUMS, "tree_allreduce", SUM),
    "optimizer of its own choice": (
        "class ShardedOptimizer:\n    def __init__(self, module, lr):\n        self.lr = lr\n",
        "zero.equivalence",
        "ShardedOptimizer",
        SINGLE,
    ),
    "around a built optimizer": (
        "class ShardedOptimizer:\n    def __init__(self, optimizer):\n        self.inner = optimizer\n",
        "zero.equivalence",
        "ShardedOptimizer",
        SINGLE,
    ),
    "argument that it has not": (
        "def train_step(stage, microbatches, targets, loss_fn, tied):\n    return tied\n",
        "pipeline.equivalence",
        "train_step",
        "test_gradients_are_those_of_a_single_process",
    ),
    "stage of its author's own class": (
        "class PipelineStage:\n"
        "    def __init__(self, module, rank, world_size):\n        self.module = module\n"
        "    def forward(self, x):\n        return self.module(x)\n"
        "    def backward(self, grad):\n        return grad\n"
        "def run_gpipe(stage: PipelineStage, microbatches, targets, loss_fn):\n    return stage\n",
        "pipeline.equivalence",
        "train_step",
        "test_gradients_are_those_of_a_single_process[gpipe]",
    ),
    "weight that two units share": (
        "class FSDP:\n    def __init__(self, module):\n        self.module = module\n",
        "zero.equivalence",
        "fully_shard",
        "test_training_is_that_of_a_single_process[tied-2-stage-3]",
    ),
    "advice without the configuration": (
        "def advise(num_parameters):\n    return '1'\n",
        "choose.ddp",
        "advise",
        "test_case",
    ),
}


@pytest.mark.parametrize(("source", "claim", "name", "case"), NONE.values(), ids=NONE)
def test_what_a_script_cannot_show_has_none(tmp_path, source, claim, name, case):
    assert script(_result(claim, case), [name], _written(tmp_path, source)) is None


def test_hand_in_whose_package_cannot_be_imported_has_none():
    description = _described(str(EXAMPLES / "their_package"))
    assert script(_result("loop.mean", GRADIENTS), ["DataParallel"], description) is None


@pytest.mark.parametrize(
    ("verdict", "limit"), [(Verdict.HANGS, "10 s"), (Verdict.CRASHES, "100 s"), (Verdict.HOLDS, None)], ids=str
)
def test_ranks_that_hang_are_waited_for_briefly(tmp_path, verdict, limit):
    result = _result(SUMS, SUM, verdict=verdict)
    text = script(result, ["ring_allreduce"], _written(tmp_path, RING))
    assert text is None if limit is None else f"did not come back within {limit}" in text


def test_call_has_the_names_that_the_hand_in_has_for_its_arguments(tmp_path):
    description = _written(
        tmp_path, "def bubble_1f1b(P, M, digits=3):\n    return round((P - 1) / (M + P - 1), digits)\n"
    )
    text = script(_result("pipeline.simulators.1f1b"), ["bubble_1f1b"], description)
    assert text is not None
    assert "ours(P=P, M=M)" in text


BY_TICK = (
    """
def one_f_one_b(num_stages, num_microbatches):
    """
    + '"""One row for each clock tick."""'
    + """
    left = []
    for s in range(num_stages):
        warm, f, b = min(num_stages - 1 - s, num_microbatches), 0, 0
        kinds = "F" * warm + "FB" * (num_microbatches - warm) + "B" * warm
        left.append([(kind, s, kinds[:at].count(kind)) for at, kind in enumerate(kinds)])
    done, table = set(), []
    while any(left):
        row = []
        for s, actions in enumerate(left):
            kind, _, m = actions[0] if actions else ("", 0, 0)
            needs = {("F", s - 1, m)} if kind == "F" and s else set()
            needs |= {("B", s + 1, m)} if kind == "B" and left[s + 1:] else set()
            row.append(actions.pop(0) if actions and needs <= done else None)
        done |= {*row}
        table.append(row)
    return table
"""
)
REFUSES = "    if min(num_stages, num_microbatches) < 1:\n        raise ValueError\n"
CYCLES = """
def clock_cycles(m, n):
    for k in range(m + n - 1):
        yield [(k - j, j) for j in range(max(1 + k - m, 0), min(1 + k, n))]
"""
SCHEDULES = {
    "row for each tick": (
        BY_TICK.replace("    left = []\n", f"{REFUSES}    left = []\n"),
        "one_f_one_b",
        "1f1b.same-bubble",
        " right, 0 wrong",
    ),
    "as the memory sees it": (BY_TICK, "one_f_one_b", "1f1b.memory", " right, 0 wrong"),
    "cycles without kinds": (CYCLES, "gpipe", "gpipe.bubble", "nothing is said of it"),
}


@pytest.mark.parametrize(("source", "name", "claim", "said"), SCHEDULES.values(), ids=SCHEDULES)
def test_schedule_that_is_right_is_never_called_wrong(tmp_path, source, name, claim, said):
    text = script(_result(f"pipeline.{claim}"), [name], _written(tmp_path, source))
    assert text is not None
    path = tmp_path / "shown.py"
    path.write_text(text)
    told = outputs([path])[path]
    assert said in told
    assert "WRONG" not in told
    assert told.splitlines()[-1] == "exit status 0"


def test_file_with_a_mark_of_byte_order_is_read(tmp_path):
    description = _written(tmp_path, "\ufeffdef bubble_1f1b(P, M):\n    return 0.5\n")
    assert script(_result("pipeline.simulators.1f1b"), ["bubble_1f1b"], description) is not None


def test_ranks_of_a_bubble_may_be_called_p(tmp_path):
    description = _written(tmp_path, "def bubble_1f1b(p, m):\n    return (p - 1) / (m + p - 1)\n")
    assert "ours(p=P, m=M)" in (script(_result("pipeline.simulators.1f1b"), ["bubble_1f1b"], description) or "")


def test_fault_beyond_the_plainest_use_has_no_script(tmp_path):
    """A rank that comes late: a script in which all come at once would say that all is right."""
    description = _written(tmp_path, RING)
    cases = ["test_a_result_is_there_when_the_call_returns", SUM]
    texts = [script(_result(SUMS, case, tier=Tier.CONTRACT), ["ring_allreduce"], description) for case in cases]
    assert [text is None for text in texts] == [True, False]
