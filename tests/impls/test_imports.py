"""Imports that fail for reasons of their own: replaced where that is asked for; packages that fail are left out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from impls.loading import Implementation, load

Write = Callable[[dict[str, str]], str]
KERNELS = """
import no_such_gpu_package
import no_such_gpu_package.language as tl
from no_such_gpu_package.runtime import driver

@no_such_gpu_package.autotune(configs=[no_such_gpu_package.Config({"B": 1})], key=["n"])
@no_such_gpu_package.jit
def kernel(x, n: tl.constexpr): return x

class Options(driver.Base): pass

def all_reduce(tensor):
    with no_such_gpu_package.profile("reduce"):
        return tensor
"""


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    before = dict(sys.modules), list(sys.path)

    def write_files(files: dict[str, str]) -> str:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return str(tmp_path)

    yield write_files
    for name in set(sys.modules) - set(before[0]):
        del sys.modules[name]
    sys.path[:] = before[1]


def test_nothing_is_replaced_unasked(write: Write) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_gpu_package"):
        load(write({"mine.py": KERNELS}) + "/mine.py")


@pytest.mark.parametrize("where", ["module", "manifest", "file"])
def test_named_imports_are_replaced_and_told(write: Write, where: str) -> None:
    tables = {
        "module": "adapters = {'stub': ['no_such_gpu_package'], 'ring_allreduce': all_reduce}\n",
        "manifest": "MANIFEST = {'adapters': {'stub': 'no_such_gpu_package'}}\n",
        "file": "",
    }
    folder = write({"mine.py": KERNELS + tables[where], "t.toml": 'adapters.stub = ["no_such_gpu_package"]'})
    implementation = load(f"{folder}/mine.py" + (f"?adapters={folder}/t.toml" if where == "file" else ""))
    assert implementation.call("all_reduce", tensor=3) == 3
    assert implementation.modules[0].kernel(5, 1) == 5
    assert "replaced by stubs, as the adapters table asks: no_such_gpu_package" in implementation.remarks()
    assert "no_such_gpu_package" not in sys.modules


def test_part_of_torch_is_replaced_for_the_hand_in_alone(write: Write) -> None:
    import torch.cuda

    before = torch.cuda.nvtx
    source = """
import torch
import torch.cuda.nvtx as nvtx
adapters = {"stub": ["torch.cuda.nvtx"]}

@nvtx.range("all reduce")
def all_reduce(tensor):
    nvtx.range_push("inside")
    return tensor
"""
    implementation: Implementation = load(write({"mine.py": source}) + "/mine.py")
    assert implementation.call("all_reduce", tensor=3) == 3
    assert torch.cuda.nvtx is before


PACKAGE = {
    "theirs/__init__.py": "import importlib.metadata\nimportlib.metadata.version('never-installed')\n",
    "theirs/ring.py": "from theirs.helper import WHO\ndef all_reduce(tensor): return WHO\n",
    "theirs/helper.py": "WHO = 'helper'\n",
}


@pytest.mark.parametrize("spec", ["theirs/ring.py", "theirs"])
def test_a_package_that_asks_for_its_own_version_is_left_out_and_told(write: Write, spec: str) -> None:
    implementation = load(f"{write(PACKAGE)}/{spec}")
    assert implementation.call("all_reduce", tensor=3) == "helper"
    (told,) = implementation.remarks()
    assert told.startswith("theirs/__init__.py was left out, as it failed here (PackageNotFoundError")


def test_what_fails_in_the_file_itself_fails(write: Write) -> None:
    with pytest.raises(ZeroDivisionError):
        load(write({**PACKAGE, "theirs/ring.py": PACKAGE["theirs/ring.py"] + "1 / 0\n"}) + "/theirs/ring.py")
