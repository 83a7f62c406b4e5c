"""Hints that teach: a hand-in with a fault, run through the real checks on real ranks, is told that very fault first.

One run of few cases over all of them. What has another fault is told nothing but the claim's own hint.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.hints.texts import texts
from tests.conformance.conftest import ROOT

pytestmark = pytest.mark.timeout(600)  # one run over all hand-ins and mutants

SUM = "test_every_rank_gets_the_sum"
GATHER = "test_every_rank_gets_all_tensors_in_rank_order"
SCATTER = "test_rank_r_gets_chunk_r_of_the_sum"
ROOTS = "test_every_rank_gets_the_tensor_of_any_root"
MEAN = "test_gradients_are_those_of_the_global_batch and mlp"
FRESH = "test_each_step_has_its_own_gradients_and_none_where_nothing_was_used and mlp"
TRAINED = "test_training_is_that_of_a_single_process and mlp and 3-stage-1"
PIPELINE = "test_gradients_are_those_of_a_single_process and 1f1b and 3-"
HINTS, EXAMPLES = "tests/conformance/hints/hand_ins/", "tests/examples/"

# hand-in or mutant, what of it is examined, the name of its signature; None: nothing that is certain
TOLD = [
    (HINTS + "collectives.py", f"{SUM} and -all_reduce", "averaged"),
    (HINTS + "collectives.py", f"{SUM} and ring_allreduce", "dims"),
    (HINTS + "collectives.py", f"{GATHER} and ring_allgather", "zeros"),
    (HINTS + "collectives.py", f"{GATHER} and -all_gather", "shifted_chunk"),
    (HINTS + "collectives.py", f"{ROOTS} and -broadcast", "root"),
    (HINTS + "collectives.py", f"{ROOTS} and tree_broadcast", "only_root"),
    (HINTS + "more_collectives.py", f"{SUM} and -all_reduce", "constant"),
    (HINTS + "more_collectives.py", "test_any_dtype_shape and ring_allreduce", "dtype"),
    (HINTS + "more_collectives.py", f"{GATHER} and ring_allgather", "shifted"),
    (HINTS + "more_collectives.py", f"{GATHER} and -all_gather", "rounded"),
    (HINTS + "more_collectives.py", f"{SCATTER} and ring_reduce_scatter", "shifted_chunk"),
    (HINTS + "more_collectives.py", f"{ROOTS} and tree_broadcast", "right_for_two_ring"),
    (EXAMPLES + "ring_of_two.py", f"{SUM} and ring_allreduce", "right_for_two_ring"),
    (EXAMPLES + "ring_flat_only.py", f"{SUM} and ring_allreduce", "uneven_rows"),
    ("mutants/ring_drops_the_remainder", f"{SUM} and ring_allreduce", "remainder"),
    ("mutants/ring_never_sums_the_last_chunk", f"{SUM} and ring_allreduce", "last_chunk"),
    ("mutants/tree_forgets_ranks_beyond_a_power_of_two", f"{SUM} and tree_allreduce", "powers_of_two"),
    ("mutants/ring_hides_nan", "test_what_is_not_finite and ring_allreduce", "finite"),
    ("mutants/ring_takes_strided_for_dense", "test_any_dtype_shape and ring_allreduce", "strided"),
    ("mutants/ring_hangs_on_five_ranks", "test_any_dtype_shape and ring_allreduce", "sizes"),
    ("mutants/ring_takes_the_maximum", f"{SUM} and ring_allreduce", None),
    ("mutants/ring_whole_tensor", "test_each_rank_of_a_ring_sends_2t", "whole_tensor_once"),
    (HINTS + "collectives.py", "test_each_rank_of_a_scattering_ring", "whole_tensor"),
    ("mutants/tree_sends_each_level_twice", "test_the_busiest_rank_of_a_tree", "twice"),
    ("mutants/ddp_sums_without_dividing", MEAN, "summed"),
    ("mutants/ddp_divides_twice", MEAN, "divided_twice"),
    ("mutants/ddp_divides_by_two", MEAN, "written_out_two"),
    ("mutants/ddp_averages_on_rank_zero_only", MEAN, "only_rank_zero"),
    ("mutants/ddp_broadcasts_nothing", MEAN, "own_weights"),
    ("mutants/ddp_takes_the_maximum", MEAN, None),
    (HINTS + "ddp_on_a_copy.py", MEAN, "own_gradient"),
    (HINTS + "ddp_not_waited_for.py", MEAN, "own_gradient_divided"),
    (HINTS + "ddp_keeps_its_bucket.py", FRESH, "later_step"),
    (EXAMPLES + "zero_fixed_rate.py", "test_a_learning_rate_that_changes_is_seen and 3-stage-1", "rate_ignored"),
    (HINTS + "zero_loses_its_state.py", "test_training_goes_on_from_a_saved_state and 3-stage-1", "state_lost"),
    ("mutants/zero1_has_one_groups_options", "test_parameter_groups_keep and 3-stage-1", "one_groups_options"),
    ("mutants/zero1_loses_momentum", TRAINED, "state_forgotten"),
    ("mutants/zero1_sums_without_dividing", TRAINED, "gradients_summed"),
    (EXAMPLES + "pipeline_sums.py", PIPELINE, "microbatches_summed"),
    (HINTS + "pipeline_divided.py", PIPELINE, "microbatches_divided"),
    (EXAMPLES + "tensor_parallel_bias.py", "bit_for_bit and 3 and row", "row"),
]

CHECKS = [
    "conformance/collectives/test_values_allreduce.py",
    "conformance/collectives/test_values_parts.py",
    "conformance/collectives/test_values_relied.py",
    "conformance/collectives/test_bytes.py",
    "conformance/loop/test_gradients.py",
    "conformance/zero/test_equivalence_training.py",
    "conformance/zero/test_equivalence_steps.py",
    "conformance/zero/test_equivalence_resume.py",
    "conformance/pipeline/test_equivalence.py",
    "conformance/strategies/test_tensor_values.py",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of one run in which each is examined for what it is in the table for, and nothing else."""
    folder = tmp_path_factory.mktemp("hints")
    impls = dict.fromkeys(impl for impl, _, _ in TOLD)
    chosen = " or ".join(f"([{_shown(impl)}- and {select})" for impl, select, _ in TOLD)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *CHECKS, "-k", chosen]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [*command, *(f"--impl={impl}" for impl in impls), f"--report={folder}"],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout[-2000:]
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> list[dict[str, Any]]:
    """The broken cases."""
    found = json.loads((folder / "report.json").read_text(encoding="utf-8"))["results"]
    return [result for result in found if result["verdict"] in ("violated", "hangs", "crashes")]


def _shown(impl: str) -> str:
    return impl if impl.startswith("mutants/") else Path(impl).name


def _is_about(result: dict[str, Any], impl: str, select: str) -> bool:
    case = result["case"].replace("[", "-")
    return result["impl"] == _shown(impl) and all(word in case for word in select.split(" and "))


def _first(hint: str) -> str | None:
    """The signature that a hint begins with."""
    filled = {name: re.split(r"{\w+}", entry["en"]) for name, entry in texts().items()}
    patterns = {name: ".+?".join(map(re.escape, parts)) for name, parts in filled.items()}
    return next((name for name, regex in patterns.items() if re.match(regex, hint)), None)


@pytest.mark.parametrize(("impl", "select", "name"), TOLD)
def test_fault_is_named_first_in_its_hint(results, impl: str, select: str, name: str | None) -> None:
    broken = [result for result in results if _is_about(result, impl, select)]
    assert broken
    assert {(_first(result["hint"]["en"]), bool(result["hint"]["fa"])) for result in broken} == {(name, True)}


def test_hint_of_the_claim_follows(results) -> None:
    own = {result["hint"]["en"] for result in results if result["claim"] == "loop.mean"}
    assert own
    assert all("off by a constant factor" in hint for hint in own)


def test_cases_of_a_broken_sum_are_counted_by_the_number_of_ranks(results) -> None:
    (message,) = [result["message"] for result in results if result["impl"] == "ring_of_two.py"]
    assert re.search(r"broken, of all cases tried: 0 of \d+ with N = 2, (\d+) of \1 with N = 3, ", message)


def test_broken_claim_has_its_script_in_the_report_folder(folder, results) -> None:
    names = {result["reproduce"] for result in results if "reproduce" in result}
    assert names
    for name in names:
        assert "Without Lockstep" in (folder / "reproduce" / name).read_text(encoding="utf-8")
