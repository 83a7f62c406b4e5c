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


INSIDE = """
import torch
def all_reduce(tensor):
    from no_such_gpu_package.ops import add
    torch.cuda.nvtx.range_push("inside")
    return add(tensor)
"""


def test_import_inside_a_function_is_told_with_the_line_that_replaces_it(write: Write) -> None:
    implementation = load(write({"mine.py": INSIDE}) + "/mine.py")
    line = 'adapters = {"stub": ["no_such_gpu_package"]}'
    (told,) = implementation.remarks()
    assert told.startswith("mine.py:4 imports no_such_gpu_package, which is not installed here")
    assert line in told
    with pytest.raises(ModuleNotFoundError) as caught:
        implementation.call("all_reduce", tensor=3)
    assert line in str(caught.value)


def test_import_inside_a_function_is_replaced_as_well(write: Write) -> None:
    replaced = 'adapters = {"stub": ["no_such_gpu_package", "torch.cuda.nvtx"]}\n'
    implementation = load(write({"mine.py": INSIDE + replaced}) + "/mine.py")
    assert repr(implementation.call("all_reduce", tensor=3)).startswith("<no_such_gpu_package.ops.add")
    assert all("not installed" not in told for told in implementation.remarks())
    load(write({"other/mine.py": "def all_reduce(tensor): return tensor"}) + "/other/mine.py").call(
        "all_reduce", tensor=3
    )
    assert "no_such_gpu_package" not in sys.modules


@pytest.mark.parametrize(
    "source",
    [
        "def all_reduce(tensor):\n    try:\n        import no_such\n    except ImportError:\n        pass\n",
        "def all_reduce(tensor):\n    import math, torch\n    from helper import WHO\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import no_such\ndef all_reduce(tensor): 1 / 0\n",
        "def all_reduce(tensor): 1 / 0\nif __name__ == '__main__':\n    import no_such\n",
    ],
    ids=["caught", "there", "types", "script"],
)
def test_import_that_does_no_harm_is_not_told(write: Write, source: str) -> None:
    assert load(write({"mine.py": source, "helper.py": "WHO = 'helper'\n"}) + "/mine.py").remarks() == []


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
