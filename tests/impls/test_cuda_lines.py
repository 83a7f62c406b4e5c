"""Lines that ask for cuda whatever the machine has are found in the text; what asks first is let be."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from impls.cuda_lines import cuda_lines
from impls.loading import load

NO_MATTER_WHAT = [
    "x = module.cuda()",
    'x = torch.zeros(1, device="cuda")',
    'x = torch.device("cuda", rank)',
    'x = t.to("cuda:1")',
    'x = t.to(f"cuda:{rank}")',
    "torch.cuda.set_device(rank)",
    'dist.init_process_group(backend="nccl")',
    'def f(device="cuda"): return device',
    "def f():\n    if rank == 0:\n        return torch.cuda.Stream()",
]
ONLY_WHERE_IT_IS = [
    'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
    'device = "cpu" if not torch.cuda.is_available() else f"cuda:{rank}"',
    'backend = "nccl" if torch.cuda.device_count() >= 2 else "gloo"',
    "if torch.cuda.is_available():\n    torch.cuda.set_device(rank)\nelse:\n    torch.cuda.set_device(1)",
    "use_cuda = torch.cuda.is_available()\nif use_cuda and rank:\n    module.cuda()",
    "def f():\n    if not torch.cuda.is_available():\n        return 'cpu'\n    return torch.device('cuda')",
    "def f():\n    if torch.cuda.is_available():\n        return 'cuda'\n    return 'cpu'",
    "if x.is_cuda:\n    torch.cuda.synchronize()",
    'if x.device.type == "cuda":\n    torch.cuda.synchronize()',
    'if dist.get_backend() == "nccl":\n    torch.cuda.synchronize()',
    "try:\n    torch.cuda.synchronize()\nexcept RuntimeError:\n    pass",
    'if __name__ == "__main__":\n    main("nccl", x.cuda())',
    'assert kind in ("cuda", "cpu")',
    'print("cuda")\nraise ValueError("nccl")',
    '"""cuda"""\ntorch.cuda.empty_cache()\ntorch.cuda.manual_seed(0)\ntorch.cuda.is_available()',
]


@pytest.mark.parametrize("source", NO_MATTER_WHAT)
def test_line_that_asks_for_cuda_is_named(tmp_path: Path, source: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"import torch\n{source}\n")
    line = source.splitlines()[-1].strip()
    assert cuda_lines([path]) == [f"mine.py:{1 + len(source.splitlines())}: {line}"]


@pytest.mark.parametrize("source", ONLY_WHERE_IT_IS)
def test_line_that_asks_first_is_not_named(tmp_path: Path, source: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"import torch\n{source}\n")
    assert cuda_lines([path]) == []


def test_file_with_a_byte_order_mark_and_odd_escapes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_bytes(b"\xef\xbb\xbfx = '\\d'\ny = module.cuda()\n")
    assert cuda_lines([path]) == ["mine.py:2: y = module.cuda()"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has cuda")
def test_it_is_told_before_a_run_unless_the_requests_are_moved(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def all_reduce(tensor):\n    return tensor.cuda()\n")
    (told,) = load(str(path)).remarks()
    assert "in mine.py:2: return tensor.cuda(). A run says refuses of what comes there; --device-shim moves" in told
    assert load(f"{path}?device=cpu").remarks() == ["requests for cuda are moved to the CPU (--device-shim)"]
