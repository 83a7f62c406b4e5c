"""One root cause is one red row: a typical wrong DDP breaks one claim, and what needs that claim is blocked."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conformance.conftest import ROOT

CHOSEN = ("loop", "faq", "strategies.ddp.traffic")
BROKEN = ("violated", "crashes", "hangs")

NEITHER = """
import torch
import torch.distributed as dist

class DDP(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def finish_gradient_synchronization(self):
        for parameter in self.module.parameters():
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                dist.all_reduce(parameter.grad)
"""
NO_DIVISION = NEITHER.replace(
    "        self.module = module\n",
    "        self.module = module\n"
    "        for tensor in [*module.parameters(), *module.buffers()]:\n"
    "            dist.broadcast(tensor.data, 0)\n",
)
NO_BROADCAST = NEITHER + "                parameter.grad /= dist.get_world_size()\n"
CRASHES = NEITHER.replace("        self.module = module\n", "        self.module = modul\n")


SOURCES = {"no_division": NO_DIVISION, "no_broadcast": NO_BROADCAST, "neither": NEITHER, "crashes": CRASHES}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One run over all of them, on two ranks."""
    folder = tmp_path_factory.mktemp("run")
    for name, source in SOURCES.items():
        (folder / f"{name}.py").write_text(source)
    chosen = [f"--claim={name}" for name in CHOSEN] + [f"--impl={folder / name}.py" for name in SOURCES]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, f"--report={folder}"]
    command += ["--hypothesis-profile=quick"]
    done = subprocess.run(
        [*command, "-k", "not 3 and not 4 and not 5 and not 8", "conformance"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return json.loads((folder / "report.json").read_text())["results"]


@pytest.mark.parametrize(
    ("name", "roots"),
    [
        ("no_division", {"loop.mean"}),
        ("no_broadcast", {"loop.construct-broadcast"}),
        ("neither", {"loop.mean", "loop.construct-broadcast"}),
        ("crashes", {"loop.construct-broadcast"}),
    ],
)
def test_red_rows_of_a_wrong_ddp_are_its_root_causes(results, name, roots):
    own = [result for result in results if result["impl"] == f"{name}.py"]
    assert {result["claim"] for result in own if result["verdict"] in BROKEN} == roots
    blocked = [result for result in own if result["verdict"] == "blocked"]
    assert blocked
    assert {result["blocked_by"] for result in blocked} <= roots
