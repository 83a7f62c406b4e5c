"""No rank has what belongs to the others: to look for it in the own process, without communicating, earns nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import ROOT

pytestmark = pytest.mark.timeout(600)  # one run of real checks

HAND_IN = "tests/conformance/looks_around.py"
CASES = {  # checks that it passed while every rank was handed the values of all
    "collectives.values.allreduce": "collectives/test_values_allreduce.py::"
    "test_every_rank_gets_the_sum[HAND_IN-all_reduce]",
    "collectives.values.allgather": "collectives/test_values_parts.py::"
    "test_every_rank_gets_all_tensors_in_rank_order[HAND_IN-all_gather]",
    "collectives.values.reduce-scatter": "collectives/test_values_parts.py::"
    "test_rank_r_gets_chunk_r_of_the_sum[HAND_IN-reduce_scatter]",
    "collectives.values.broadcast": "collectives/test_values_parts.py::"
    "test_every_rank_gets_the_tensor_of_any_root[HAND_IN-broadcast]",
    "loop.construct-broadcast": "loop/test_construct.py::"
    "test_construction_gives_every_rank_the_parameters_of_rank_0[HAND_IN-mlp-3]",
    "loop.mean": "loop/test_gradients.py::test_gradients_are_those_of_the_global_batch[HAND_IN-mlp-3]",
    "calls.div": "loop/test_calls.py::test_every_gradient_is_divided_by_n_once[HAND_IN-mlp-3]",
    "zero.equivalence": "zero/test_equivalence_training.py::"
    "test_many_steps_are_exact_where_gradients_are_integers[HAND_IN-3-stage-1]",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By claim, the result of its check."""
    folder = tmp_path_factory.mktemp("report")
    cases = [f"conformance/{case}".replace("HAND_IN", Path(HAND_IN).name) for case in CASES.values()]
    command = [sys.executable, "-m", "pytest", *cases, f"--impl={HAND_IN}", f"--report={folder}", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580, check=False)
    assert (folder / "report.json").exists(), done.stdout + done.stderr
    found = json.loads((folder / "report.json").read_text())["results"]
    return {result["claim"]: result for result in found}


@pytest.mark.parametrize("claim", CASES)
def test_what_lies_in_a_rank_is_not_enough_for_the_values_of_all(
    results: dict[str, dict[str, Any]], claim: str
) -> None:
    assert results[claim]["verdict"] in ("violated", "blocked"), results[claim]["message"]
