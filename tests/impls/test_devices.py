"""Code that asks for cuda where there is none: told with its line, or moved to the CPU where that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures.world.outcome import Ending
from fixtures.world.pool import WorldPool
from impls.devices import NoSuchDevice
from impls.loading import load
from tests.impls import device_programs as programs

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has cuda")

HARD_CODED = """
import torch
import torch.distributed as dist

SCALE = torch.device("cuda")

def all_reduce(tensor):
    if not dist.is_initialized():
        dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        event.record(stream)
        moved = tensor.cuda(non_blocking=True).to("cuda:0") + torch.zeros(1, device="cuda").to(SCALE)
        layer = torch.nn.Linear(1, 1, device="cuda").cuda()
        layer.to(0).to(device=1)
        torch.ones(2, device=dist.get_rank())
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    dist.all_reduce(moved, group=dist.new_group(backend="nccl"))
    return moved.cpu()
"""


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(HARD_CODED)
    return str(path)


def test_a_request_for_cuda_is_told_with_its_line_and_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def all_reduce(tensor):\n    return tensor.cuda()\n")
    with pytest.raises(NoSuchDevice) as caught:
        load(str(path)).call("all_reduce", tensor=torch.zeros(1))
    assert str(caught.value).startswith(
        "mine.py:2: return tensor.cuda() asks for cuda, which this machine does not have"
    )
    assert "--device-shim moves" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "is_of_the_device"),
    [
        ("torch.zeros(1, device='cuda')", True),
        ("torch.cuda.set_device(0)", True),
        ("torch.cuda.nvtx.range_push('x')", True),
        ("0 % torch.cuda.device_count()", True),
        ("1 // 0", False),
        ("tensor + 'x'", False),
    ],
)
def test_other_errors_stay_what_they_are(tmp_path: Path, line: str, is_of_the_device: bool) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"import torch\ndef all_reduce(tensor):\n    return {line}\n")
    with pytest.raises(Exception) as caught:  # noqa: PT011  (whichever it is)
        load(str(path)).call("all_reduce", tensor=torch.zeros(1))
    assert isinstance(caught.value, NoSuchDevice) is is_of_the_device


def test_requests_are_moved_where_that_is_asked_for(worlds: WorldPool, spec: str) -> None:
    outcomes: Any = worlds.world(2, impl=f"{spec}?device=cpu").run(programs.all_reduce_ones)
    assert [outcome.ending for outcome in outcomes] == [Ending.RETURNED] * 2, outcomes.describe()
    assert [value.tolist() for value in outcomes.values] == [[2.0, 2.0]] * 2


def test_without_the_shim_every_rank_refuses(worlds: WorldPool, spec: str) -> None:
    outcomes = worlds.world(2, impl=spec).run(programs.all_reduce_ones)
    assert {outcome.raised.type for outcome in outcomes if outcome.raised} == {"impls.devices.NoSuchDevice"}
