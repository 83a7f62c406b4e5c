"""``python -m lessons collectives``: its table, what it says is wrong, and its exit status."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fixtures.world.pool import WorldPool
from lessons import collectives
from lessons.__main__ import find, main
from lessons.collectives_run import BY_NAME, PRIMITIVES, Row, observe, pattern
from tests.lessons.running import on_warm_ranks

ROOT = Path(__file__).resolve().parents[2]
N, NUMEL = 4, 840
T = 4 * NUMEL
BYTES = {  # by each of four ranks, of 840 floats
    "ring_allreduce": [5040] * 4,
    "tree_allreduce": [6720, 3360, 6720, 3360],
    "ring_allgather": [10080] * 4,
    "ring_reduce_scatter": [2520] * 4,
    "tree_broadcast": [0, 3360, 0, 6720],
}
BARE_MESH = """
import queue

class End:
    def __init__(self, rank, boxes):
        self.me, self.boxes = rank, boxes
    def send(self, dst, tensor):
        self.boxes[self.me, dst].put(tensor.clone())
    def recv(self, src):
        return self.boxes[src, self.me].get(timeout=30)

def queue_mesh(world_size):
    ranks = range(world_size)
    boxes = {(a, b): queue.Queue() for a in ranks for b in ranks}
    return {rank: End(rank, boxes) for rank in ranks}
"""


def _sound() -> Row:
    total = torch.stack([pattern(NUMEL, rank) for rank in range(N)]).sum(0)
    return Row(
        primitive=BY_NAME["ring_allreduce"],
        world_size=N,
        numel=NUMEL,
        sent_bytes=BYTES["ring_allreduce"],
        results=[total] * N,
        gloo=[total.clone()] * N,
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_the_reference_sends_what_its_formulas_say(worlds: WorldPool, name: str) -> None:
    row = observe(on_warm_ranks(worlds, "reference"), name, N, NUMEL)
    assert row.trouble == ""
    assert list(row.sent_bytes) == BYTES[name]
    assert list(collectives.faults(row)) == []
    assert (row.own_mesh, row.own_function) == (True, True)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_mesh_of_send_and_recv_alone_carries_the_rings_of_the_reference(
    worlds: WorldPool, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "mesh.py"
    path.write_text(BARE_MESH)
    row = observe(on_warm_ranks(worlds, str(path)), name, 3, 101)
    assert list(collectives.faults(row)) == []
    assert (row.own_mesh, row.own_function) == (True, False)
    assert "(the reference's)" in "\n".join(collectives.told([row]))


def test_the_command_prints_a_line_for_each_primitive() -> None:
    command = [sys.executable, "-m", "lessons", "collectives", "--world-size", "2", "--numel", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for primitive in PRIMITIVES:
        assert f"\n{primitive.told} " in done.stdout
    assert done.stdout.endswith("Results and bytes are as they should be.\n")


def test_another_result_and_other_bytes_are_faults() -> None:
    sound = _sound()
    assert list(collectives.faults(sound)) == []
    wrong = sound.results[0].clone()
    wrong[700] += 1
    (fault,) = collectives.faults(dataclasses.replace(sound, results=[*sound.results[:3], wrong]))
    assert "differ on rank 3 from element 700 on" in fault
    (fault,) = collectives.faults(dataclasses.replace(sound, sent_bytes=[5040, 5044, 5040, 5040]))
    assert "rank 1 sent 5,044 bytes, not 2T(N-1)/N = 5,040" in fault
    (fault,) = collectives.faults(dataclasses.replace(sound, trouble="rank 2 waits for a message from rank 1"))
    assert "came to no end: rank 2 waits" in fault


def test_bytes_of_trees_have_a_bound_for_the_busiest_and_a_least_for_all() -> None:
    tree = dataclasses.replace(_sound(), primitive=BY_NAME["tree_allreduce"], sent_bytes=BYTES["tree_allreduce"])
    assert list(collectives.faults(tree)) == []
    (fault,) = collectives.faults(dataclasses.replace(tree, sent_bytes=[2 * T, 2 * T + 4, T, T]))
    assert "rank 1 sent 6,724 bytes, more than T ceil(log2 N) = 6,720" in fault
    (fault,) = collectives.faults(dataclasses.replace(tree, sent_bytes=[T, T, T, T]))
    assert "all ranks together sent 13,440 bytes, less than 20,160" in fault


def test_where_n_does_not_divide_the_tensor_the_ranks_are_counted_together() -> None:
    total = torch.stack([pattern(5, rank) for rank in range(N)]).sum(0)
    row = dataclasses.replace(_sound(), numel=5, results=[total] * N, gloo=[total] * N, sent_bytes=[28, 28, 32, 32])
    assert list(collectives.faults(row)) == []
    (fault,) = collectives.faults(dataclasses.replace(row, sent_bytes=[32, 32, 32, 32]))
    assert "all ranks together sent 128 bytes, not N times 2T(N-1)/N = 120" in fault


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--world-size=1"], "2 ranks at least"),
        (["--world-size=9"], "here 8 at most"),
        (["--numel=0"], "from 1 to 10,000,000"),
        (["--impl=nobody"], "nobody"),
    ],
)
def test_bad_input_is_status_2_and_says_what_to_do(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["76", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert find("76") is find("collectives")
