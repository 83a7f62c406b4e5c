"""``python -m lessons ddp``: what it prints and writes, whose defaults it takes, what it refuses, its status."""

from __future__ import annotations

import argparse
import errno
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest

from fixtures.world.pool import WorldPool
from lessons import ddp, ddp_file
from lessons.__main__ import main
from lessons.ddp_observed import Run, shown
from tests.lessons.running import on_warm_ranks

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "lessons" / "ddp-demo.schema.json").read_text())
OLD = "what an earlier run wrote"
SUMMING = """
import torch.distributed as dist

DEFAULT_NUM_STEPS = 3

class DataParallel:
    def __init__(self, module, world_size):
        self.module = module
        for parameter in module.parameters():
            dist.broadcast(parameter.data, src=0)
    def __call__(self, x):
        return self.module(x)
    def sync_grads(self):
        for parameter in self.module.parameters():
            dist.all_reduce(parameter.grad)
"""
AVERAGING = SUMMING + "            parameter.grad.div_(dist.get_world_size())\n"
LOOKING = """
import torch
import torch.distributed as dist

def worker(rank, world_size, init_file, model_fn, x, y, steps, batch_size, lr):
    dist.init_process_group("gloo", init_method=f"file://{init_file}", rank=rank, world_size=world_size)
    torch.manual_seed(3)
    model = model_fn().eval()
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    for step in range(steps):
        begin = (step * world_size + rank) * batch_size
        for rows in (slice(begin, begin + 3), slice(begin + 3, begin + batch_size)):
            out = model(x[rows])
            ((out - y[rows]) ** 2).sum().div(batch_size).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.data -= lr * parameter.grad / world_size
            parameter.grad = None
        torch.nn.functional.mse_loss(model(x[:20]), y[:20])
    dist.destroy_process_group()
"""


def _options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    ddp.add_arguments(parser)
    return parser.parse_args(arguments)


def _perform(worlds: WorldPool, home: Path, source: str, *arguments: str) -> tuple[int, str]:
    path = home / "mine.py"
    path.write_text(source)
    said: list[str] = []
    options = _options(f"--impl={path}", *arguments)
    return ddp.perform(options, on_warm_ranks(worlds, str(path)), home, said.append), "\n".join(said)


def _no_ranks(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("a process was started")


def test_the_command_trains_two_ranks_and_writes_its_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lessons", "48"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "2 ranks on gloo, 6 steps of SGD, 8 rows per rank: a global batch of 16" in done.stdout
    assert "161 parameters sharded and gathered are the same" in done.stdout
    written = json.loads((tmp_path / "outputs" / "ddp-demo.json").read_text())
    jsonschema.validate(written, SCHEMA)
    assert (written["world_size"], written["backend"], written["batch_size"]) == (2, "gloo", 8)
    assert len(written["losses"]) == len(written["gradient_norms"]) == written["num_steps"] == 6
    assert written["spread"] == 0 < written["spread_without_all_reduce"]
    assert written["gradient_difference"] <= written["gradient_bound"] < 1e-4
    assert [path.name for path in tmp_path.rglob("*.*")] == ["ddp-demo.json"]


def test_the_defaults_of_the_implementation_come_before_the_usual_ones(worlds: WorldPool, tmp_path: Path) -> None:
    status, text = _perform(worlds, tmp_path, AVERAGING, "--output=here.json")
    assert status == 0, text
    written = json.loads((tmp_path / "here.json").read_text())
    jsonschema.validate(written, SCHEMA)
    assert (written["world_size"], written["num_steps"], written["batch_size"]) == (2, 3, 8)
    assert written["fsdp_round_trip"] is None
    assert "has no fully_shard" in text
    status, text = _perform(worlds, tmp_path, AVERAGING, "--num-steps=4", "--no-write")
    assert (status, "4 steps of SGD" in text) == (0, True)


def test_a_fault_is_status_1_and_leaves_the_old_file_alone(worlds: WorldPool, tmp_path: Path) -> None:
    path = tmp_path / "outputs" / "ddp-demo.json"
    path.parent.mkdir()
    path.write_text(OLD)
    status, text = _perform(worlds, tmp_path, SUMMING)
    assert status == 1
    assert "the gradient after the all-reduce is not that of one process on the global batch" in text
    assert "Nothing was written: outputs/ddp-demo.json is as it was before." in text
    assert [found.read_text() for found in path.parent.iterdir()] == [OLD]


def test_losses_that_a_worker_only_looks_at_are_no_steps(worlds: WorldPool, tmp_path: Path) -> None:
    status, text = _perform(worlds, tmp_path, LOOKING, "--no-write")
    assert status == 0, text
    assert "6 steps of SGD" in text


def test_no_write_makes_no_file_and_no_folder(worlds: WorldPool, tmp_path: Path) -> None:
    status, text = _perform(worlds, tmp_path, AVERAGING, "--no-write", "--world-size=3")
    assert (status, "spread 0" in text) == (0, True)
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"mine.py"}


def test_a_path_that_cannot_be_written_is_told_before_anything_is_trained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(OLD)
    with pytest.raises(ddp.Unusable, match=r"nothing can be written in .*file.*give another path, or --no-write"):
        ddp.perform(_options("--output=file/figures.json"), _no_ranks, tmp_path)


def test_a_disk_that_fills_up_meanwhile_is_status_1(
    worlds: WorldPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ddp, "write", full)
    status, text = _perform(worlds, tmp_path, AVERAGING)
    assert status == 1
    assert "cannot be written: No space left on device" in text
    assert "--no-write" in text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("DEFAULT_NUM_STEPS = 'six'", "default of --num-steps six: this lesson takes a whole number"),
        ("DEFAULT_WORLD_SIZE = 2.0", "default of --world-size 2.0"),
        ("DEFAULT_BACKEND = 'smoke'", "default of --backend smoke: this lesson runs on gloo or nccl"),
    ],
)
def test_a_default_of_no_use_is_told_by_whose_it_is(worlds: WorldPool, tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(ddp.Unusable, match=told):
        _perform(worlds, tmp_path, f"{AVERAGING}\n{line}\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--world-size=0"], "--world-size 0: this lesson takes a whole number from 1 to 8"),
        (["--world-size=9"], "from 1 to 8"),
        (["--num-steps=0"], "--num-steps 0"),
        (["--batch-size=-8"], "--batch-size -8"),
        (["--output=."], "this is a folder"),
        (["--impl=nobody"], "nobody"),
        (["--backend=nccl"], "one for each rank, and this machine has 0. Use --backend gloo"),
    ],
)
def test_bad_input_is_status_2_before_any_process_starts(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ddp, "ranks_of", _no_ranks)
    monkeypatch.setattr(ddp, "_num_devices", lambda: 0)
    assert main(["ddp", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_nccl_is_accepted_with_a_cuda_device_for_each_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks: Run = _no_ranks
    monkeypatch.setattr(ddp, "_num_devices", lambda: 4)
    given = ["--backend=nccl", "--num-steps=1", "--batch-size=1"]
    assert ddp.resolved(_options(*given, "--world-size=4"), ranks).backend == "nccl"
    with pytest.raises(ddp.Unusable, match="this machine has 4"):
        ddp.resolved(_options(*given, "--world-size=5"), ranks)


def test_figures_that_are_no_json_leave_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    path.write_text(OLD)
    with pytest.raises(ValueError, match="JSON compliant"):
        ddp_file.write({"spread": math.nan}, path)
    assert [found.read_text() for found in tmp_path.iterdir()] == [OLD]
    ddp_file.write({"spread": 0.0}, path)
    assert [json.loads(found.read_text()) for found in tmp_path.iterdir()] == [{"spread": 0.0}]


def test_the_steps_that_are_shown_begin_with_the_first_and_end_with_the_last() -> None:
    assert [shown(count) for count in (0, 1, 2, 6)] == [[], [0], [0, 1], [0, 1, 2, 3, 4, 5]]
    assert shown(1000)[:2] == [0, 111]
    assert (shown(1000)[-1], len(shown(1000))) == (999, 10)


def test_the_schema_refuses_a_spread_that_the_lesson_calls_a_fault() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    spread = SCHEMA["properties"]["spread"]
    jsonschema.validate(0.0009, spread)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(0.001, spread)
