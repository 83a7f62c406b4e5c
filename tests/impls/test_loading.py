"""Importing what a student wrote: spellings, signatures, stubs, neighbours of the same name."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from impls.loading import Implementation, NotProvided, load
from impls.normalise import Wrapped

Write = Callable[..., Implementation]
ON_OFFER = {"mesh": "MESH", "rank": 1, "world_size": 4, "tensor": "TENSOR", "group": None, "src": 2}


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Write files and load the folder, or the only file."""
    before = dict(sys.modules), list(sys.path)

    def write_and_load(text: str = "", folder: str = "hand_in", **files: str) -> Implementation:
        root = tmp_path / folder
        for name, source in ({"mine": text} if text else files).items():
            path = root / f"{name.replace('__slash__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source))
        return load(str(root / "mine.py" if text else root))

    yield write_and_load
    for name in set(sys.modules) - set(before[0]):
        del sys.modules[name]
    sys.path[:] = before[1]


@pytest.mark.parametrize(
    "source",
    [
        "def ring_allreduce(mesh, rank, world_size, tensor): return mesh, rank, world_size, tensor",
        "def ring_allreduce(tensor, world_size, rank, mesh): return mesh, rank, world_size, tensor",
        "def ring_allreduce(mesh, rank, world_size, tensor, /): return mesh, rank, world_size, tensor",
        "def ring_allreduce(*, tensor, mesh, rank, n): return mesh, rank, n, tensor",
        "def ring_all_reduce(x, comm, num_ranks, my_rank): return comm, my_rank, num_ranks, x",
        "def ring_allreduce(*args): return args",
        "def ring_allreduce(*args, **kwargs): return args",
        "def ring_allreduce(**kwargs): return tuple(kwargs[k] for k in ('mesh', 'rank', 'world_size', 'tensor'))",
        "def ring_allreduce(mesh, tensor, chunks=3, **kwargs): return mesh, 1, 4, tensor",
        "def mine(mesh, rank, size, data): return mesh, rank, size, data\nadapters = {'ring_allreduce': 'mine'}",
        "class A:\n  @staticmethod\n  def f(mesh, r, n, t): return mesh, r, n, t\nadapters = {'ring_allreduce': 'A.f'}",
        "def mine(comm, r, n, t): return comm, r, n, t\nMANIFEST = {'adapters': {'ring_allreduce': mine}}",
        """
        import functools
        def general(op, mesh, rank, world_size, tensor): return mesh, rank, world_size, tensor
        ring_allreduce = functools.partial(general, 'sum')
        """,
        """
        import functools
        def traced(f):
            @functools.wraps(f)
            def wrapper(*args, **kwargs): return f(*args, **kwargs)
            return wrapper
        @traced
        def ring_allreduce(tensor, mesh, rank, world_size): return mesh, rank, world_size, tensor
        """,
        """
        class Ring:
            def __call__(self, mesh, rank, world_size, tensor): return mesh, rank, world_size, tensor
        ring_allreduce = Ring()
        """,
    ],
)
def test_arguments_are_handed_over_by_name(write: Write, source: str) -> None:
    assert tuple(write(source).call("ring_allreduce", **ON_OFFER)) == ("MESH", 1, 4, "TENSOR")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def ring_allreduce(tensor): return [tensor]", ["TENSOR"]),
        ("def ring_allreduce(x, process_group): return [x, process_group]", ["TENSOR", None]),
        ("def ring_allreduce(tensor, group='default'): return [tensor, group]", ["TENSOR", "default"]),
        ("def ring_allreduce(tensor, root=0): return [tensor, root]", ["TENSOR", 2]),
        ("def ring_allreduce(tensor, chunks=7): return [tensor, chunks]", ["TENSOR", 7]),
        ("def ring_allreduce(tensor, group=5, /): return [tensor, group]", ["TENSOR", 5]),
    ],
)
def test_course_forms_and_defaults(write: Write, source: str, expected: list[Any]) -> None:
    assert write(source).call("ring_allreduce", **ON_OFFER) == expected


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def ring_allreduce(tensor): raise NotImplementedError", "still empty"),
        ("def ring_allreduce(tensor):\n  'Sum.'\n  raise NotImplementedError('later')", "still empty"),
        ("def ring_allreduce(tensor): ...", "still empty"),
        ("def ring_allreduce(tensor): pass", "still empty"),
        ("ring_allreduce = 3", "has no ring_allreduce"),
        ("from torch.distributed import all_reduce as ring_allreduce\nadapters = {}", "has no ring_allreduce"),
        ("adapters = {'ring_allreduce': 'gone'}", "maps ring_allreduce to 'gone', which is not defined"),
        ("adapters = {'ring_allreduce': 3}", "ring_allreduce is int, which cannot be called"),
    ],
)
def test_what_is_not_provided_says_why(write: Write, source: str, reason: str) -> None:
    implementation = write(source)
    assert "ring_allreduce" not in implementation.provides("collectives")
    assert reason in implementation.missing("collectives")["ring_allreduce"]
    with pytest.raises(NotProvided, match=reason):
        implementation.call("ring_allreduce", **ON_OFFER)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "def f(): raise NotImplementedError('soon')\ndef all_reduce(tensor): return f()",
            "all_reduce raises .*: soon",
        ),
        ("def all_reduce(tensor, secret, key): return 1", "asks for 'secret', 'key'.*can have tensor, group"),
        ("def all_reduce(tensor, *, secret): return 1", "asks for 'secret'"),
    ],
)
def test_what_cannot_be_called_is_not_provided(write: Write, source: str, reason: str) -> None:
    with pytest.raises(NotProvided, match=reason):
        write(source).call("all_reduce", **ON_OFFER)


def test_a_library_s_not_implemented_error_is_an_error_of_the_hand_in(write: Write) -> None:
    hand_in = write("import codecs\ndef all_reduce(tensor): return codecs.Codec().encode('')\n")
    with pytest.raises(NotImplementedError):
        hand_in.call("all_reduce", **ON_OFFER)


def test_the_implementation_s_own_type_error_is_not_taken_for_a_bad_signature(write: Write) -> None:
    with pytest.raises(TypeError, match="can only concatenate list"):
        write("def all_reduce(tensor): return tensor + 1").call("all_reduce", tensor=[])


def test_provided_names_come_with_spelling_and_place(write: Write) -> None:
    implementation = write("\ndef ring_all_reduce(tensor): return tensor\n")
    assert implementation.provides("collectives") == {"ring_allreduce": "ring_all_reduce (mine.py:2)"}
    assert implementation.blocks == ("collectives",)
    assert callable(implementation.get("ring_allreduce"))
    assert implementation.get("tree_allreduce") is None


def test_two_files_of_the_same_name_never_meet(write: Write) -> None:
    files = {"ring": "import helper\ndef ring_allreduce(tensor):\n  import late\n  return helper.WHO, late.WHO\n"}
    first, second = (
        write(folder=who, **files, helper=f"WHO = {who!r}", late=f"WHO = {who!r}") for who in ("ann", "bob")
    )
    for _ in range(2):
        assert first.call("ring_allreduce", tensor=0) == ("ann", "ann")
        assert second.call("ring_allreduce", tensor=0) == ("bob", "bob")


def test_a_hand_in_may_not_replace_the_standard_library(write: Write) -> None:
    implementation = write(colorsys="", ring="import colorsys\ndef all_reduce(tensor): return colorsys.rgb_to_hsv")
    assert callable(implementation.call("all_reduce", tensor=0))


def test_a_package_with_relative_imports_and_imports_by_its_own_name(write: Write) -> None:
    implementation = write(
        folder="seminar",
        __init__="from .parts.ring import ring_allreduce",
        parts__slash____init__="",
        parts__slash__ring="from ..shared import WHO\ndef ring_allreduce(tensor): return WHO",
        shared="WHO = 'us'",
        tree="from seminar.shared import WHO\ndef tree_allreduce(tensor): return WHO",
    )
    assert implementation.call("ring_allreduce", tensor=0) == implementation.call("tree_allreduce", tensor=0) == "us"


def test_an_import_that_fails_leaves_nothing_behind(write: Write) -> None:
    with pytest.raises(ZeroDivisionError):
        write("def all_reduce(tensor): return tensor\n1 / 0\n")
    assert write("def all_reduce(tensor): return tensor\n").call("all_reduce", tensor=5) == 5


def test_constants_are_provided_as_values(write: Write) -> None:
    assert write("RECV_TIMEOUT_S = 12.5").get("RECV_TIMEOUT_S") == 12.5


WRAPPERS = [
    "class DataParallel(B):\n def __init__(self, module, world_size): super().__init__(module)\n"
    " def sync_grads(self): self.done = True",
    "class DDP(B):\n def __init__(self, model): super().__init__(model)\n"
    " def finish_gradient_synchronization(self): self.done = True",
    "class DistributedDataParallel(B):\n def on_after_backward(self, optimizer): self.done = True",
    "class W(B): pass\ndef get_ddp_bucketed(module, bucket_size_mb): return W(module)\n"
    "def ddp_bucketed_on_after_backward(ddp_model, optimizer): ddp_model.done = True",
]
BASE = """
from torch import nn
class B(nn.Module):
    def __init__(self, module, *args, **kwargs):
        super().__init__()
        self.module, self.done = module, False
    def forward(self, x): return self.module(x)
"""


@pytest.mark.parametrize("source", WRAPPERS)
def test_wrappers_of_every_form_are_driven_alike(write: Write, source: str) -> None:
    layer = torch.nn.Linear(2, 1)
    wrapped = Wrapped(write(BASE + source), layer, 1, bucket_cap_mb=1.0)
    assert wrapped(torch.ones(1, 2)).shape == (1, 1)
    wrapped.finish()
    assert wrapped.wrapper.done
    assert wrapped.module is layer
    with pytest.raises(NotProvided, match="has no no_sync"):
        wrapped.no_sync()


@pytest.mark.parametrize(
    ("signature", "options", "size"),
    [
        ("module, bucket_size_mb", {}, 25.0),
        ("module, bucket_size_mb", {"bucket_cap_mb": None}, 25.0),
        ("module, bucket_size_mb", {"bucket_cap_mb": 0.5}, 0.5),
        ("module, bucket_size_mb=7", {"bucket_cap_mb": None}, 7),
    ],
)
def test_a_wrapper_that_needs_a_bucket_size_gets_the_contract_s(
    write: Write, signature: str, options: dict[str, float | None], size: float
) -> None:
    implementation = write(f"def DDP({signature}): module.size = bucket_size_mb")
    assert Wrapped(implementation, torch.nn.Linear(2, 1), 3, **options).module.size == size


def test_a_function_that_only_hangs_hooks_into_the_module_is_a_wrapper_too(write: Write) -> None:
    layer = torch.nn.Linear(2, 1)
    wrapped = Wrapped(write("def DDP(module): module.marked = True"), layer, 1)
    assert wrapped.module is wrapped.wrapper is layer
    wrapped.finish()
    assert layer.marked


def test_torch_s_own_class_imported_by_the_hand_in_is_not_its_work(write: Write) -> None:
    implementation = write("from torch.nn.parallel import DistributedDataParallel\ndef all_reduce(tensor): return 1")
    assert "DataParallel" not in implementation.provides("data_parallel")
