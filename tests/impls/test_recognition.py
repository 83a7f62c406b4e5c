"""What is taken for what: names by their parts, PATH:NAME, tables in files, several that could be meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from impls.contract.patterns import entries_of
from impls.loading import Implementation, load
from impls.locate import ImplementationError, UnknownImplementation, locate
from impls.reach import reach
from impls.spec import Spec

Write = Callable[..., str]
NAIVE = "class NaiveDDP:\n  def __init__(self, module): self.module = module\n  def __call__(self, x): return x\n"
OTHER = NAIVE.replace("NaiveDDP", "DDPBucketed")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str, name: str = "mine.py") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_file


def taken(implementation: Implementation) -> dict[str, str]:
    return {
        name: told.partition(" ")[0]
        for block in implementation.blocks
        for name, told in implementation.provides(block).items()
    }


@pytest.mark.parametrize(
    ("name", "is_class", "entries"),
    [
        ("DDPOverlapWithBuckets", True, ["DataParallel"]),
        ("TinyDataParallel", True, ["DataParallel"]),
        ("DDPConfig", True, []),
        ("ddp_things", False, []),
        ("_DDPHelper", True, []),
        ("FSDPUnit", True, ["fully_shard"]),
        ("ZeroStage2Optimizer", True, ["Zero2Optimizer"]),
        ("ShardedAdagrad", True, ["ShardedOptimizer"]),
        ("ColwiseTPLinear", True, ["ColumnParallelLinear"]),
        ("naive_all_reduce", False, ["all_reduce"]),
        ("ring_all_reduce_v2", False, ["ring_allreduce"]),
        ("all_reduce_grads_", False, ["average_gradients"]),
        ("test_all_reduce", False, []),
        ("all_reduce_bandwidth", False, []),
        ("reduce_scatter_tensor_ring", False, ["ring_reduce_scatter"]),
        ("clock_cycles", False, ["gpipe"]),
    ],
)
def test_names_are_known_by_their_parts(name: str, is_class: bool, entries: list[str]) -> None:
    assert entries_of(name, is_class) == entries


def test_two_that_could_be_meant_are_told_and_neither_is_taken(write: Write) -> None:
    implementation = load(write(NAIVE + OTHER))
    assert taken(implementation) == {}
    (told,) = implementation.remarks()
    assert "DDPBucketed (mine.py:4) and NaiveDDP (mine.py:1) could each be DataParallel" in told
    assert "mine.py:DDPBucketed" in told
    assert 'adapters = {"DataParallel": "DDPBucketed"}' in told


def test_the_command_line_or_a_table_says_which_is_meant(write: Write) -> None:
    path, table = write(NAIVE + OTHER), write('DataParallel = "NaiveDDP"', "table.toml")
    assert taken(load(f"{path}:DDPBucketed")) == {"DataParallel": "DDPBucketed"}
    assert taken(load(f"{path}?adapters={table}")) == {"DataParallel": "NaiveDDP"}


def test_a_copy_in_another_file_is_told_by_the_file_and_a_table_says_which_is_meant(write: Write) -> None:
    folder = Path(write(NAIVE)).parent
    write(NAIVE, "mine copy.py")
    (told,) = load(f"{folder}/").remarks()
    assert told.endswith('keep one of the files, or choose with adapters = {"DataParallel": "mine copy.NaiveDDP"}')
    write(NAIVE + 'adapters = {"DataParallel": "mine.NaiveDDP"}\n')
    chosen = load(f"{folder}/")
    assert inspect.getsourcefile(chosen.get("DataParallel")) == str(folder / "mine.py")
    assert reach(chosen, "DataParallel")["names"] == "names['NaiveDDP']"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (NAIVE + "def get_ddp(module): return NaiveDDP(module)\n", "get_ddp"),
        (NAIVE.replace("NaiveDDP", "BaseDDP") + "class MyFastDDP(BaseDDP): pass\n", "MyFastDDP"),
        (NAIVE + "def DataParallel(module): return module\n", "DataParallel"),
        (NAIVE + "def DataParallel(module): raise NotImplementedError\n", "NaiveDDP"),
        (NAIVE + "FastDDP = NaiveDDP\n", "NaiveDDP"),
        (
            NAIVE.replace("NaiveDDP", "Wrapper") + "  def finish_gradient_synchronization(self): self.x = 1\n",
            "Wrapper",
        ),
    ],
    ids=["around", "base", "canonical", "empty", "one object", "method"],
)
def test_one_that_stands_for_the_others_is_taken(write: Write, source: str, expected: str) -> None:
    assert taken(load(write(source))) == {"DataParallel": expected}


def test_of_one_course_s_functions_the_first_is_taken_and_the_others_are_told(write: Write) -> None:
    implementation = load(
        write("def get_ddp(module): return module\ndef get_ddp_bucketed(module, bucket_size_mb): return module\n")
    )
    assert taken(implementation) == {"DataParallel": "get_ddp"}
    assert any("get_ddp_bucketed (mine.py:2) can be examined, too" in remark for remark in implementation.remarks())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (":NaiveDPD", "does not define 'NaiveDPD'. Did you mean 'NaiveDDP'?"),
        (":helper", "nothing in the name 'helper' says what it is"),
        (":DataParalel=helper", "'DataParalel' is no name of the contract. Did you mean 'DataParallel'?"),
        ("?adapters=gone.toml", "--adapters=gone.toml: it cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(write: Write, asked: str, words: str) -> None:
    with pytest.raises(ImplementationError) as caught:
        locate(write(NAIVE + "def helper(module): return module\n") + asked)
    assert words in str(caught.value)


def test_any_definition_can_be_asked_for_with_the_name_it_stands_for(write: Write) -> None:
    path = write("class Wrapper:\n  def __init__(self, module): pass\n")
    assert taken(load(f"{path}:DataParallel=Wrapper")) == {"DataParallel": "Wrapper"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("DataParalel = 'X'", "'DataParalel', which is no name of the contract: did you mean 'DataParallel'?"),
        ("op = 'median'", 'op is "sum" or "mean", not \'median\''),
        ("stub = 3", "stub is a list of the names of imports"),
        ("DataParallel = 3", "DataParallel is 3, not the name"),
        ("[adapters", "this is no TOML"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(write: Write, text: str, words: str) -> None:
    with pytest.raises(ImplementationError) as caught:
        locate(f"{write(NAIVE)}?adapters={write(text, 'table.toml')}")
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ['op = "mean"', '[adapters]\nop = "mean"'], ids=["top", "table"])
def test_a_file_goes_before_the_table_in_the_module(write: Write, text: str) -> None:
    path = write(NAIVE + "adapters = {'op': 'sum'}\n")
    assert not load(path).averages
    assert load(f"{path}?adapters={write(text, 'table.toml')}").averages


def test_the_digest_follows_the_table(write: Write) -> None:
    path = write(NAIVE)
    digests = [locate(f"{path}?adapters={write(text, 'table.toml')}").sha256 for text in ('op = "mean"', 'op = "sum"')]
    assert len({locate(path).sha256, *digests}) == 3


@pytest.mark.parametrize(
    "spec",
    [
        Spec(where="a.py"),
        Spec(where="a.py", only="B"),
        Spec(where="a.py", only="DataParallel=B", adapters="/x y/t.toml", device_shim=True),
    ],
)
def test_a_spec_is_its_text(spec: Spec) -> None:
    assert Spec.parse(str(spec)) == spec


def test_a_path_that_is_there_is_a_path(write: Write) -> None:
    path = write(NAIVE, "odd?adapters=x:y.py")
    assert locate(path).path == Path(path)


def test_a_name_after_a_path_that_is_not_there_makes_no_difference(write: Write) -> None:
    path = write(NAIVE, "x.py").replace("x.py", "y.py")
    with pytest.raises(UnknownImplementation):
        locate(path + ":NaiveDDP")


def test_what_was_taken_for_nothing_is_proposed(write: Write) -> None:
    implementation = load(
        write("def sum_of_gradients(module): return module\ndef _private(module): ...\ndef plot(x): return x\n" + NAIVE)
    )
    assert implementation.proposals() == {"sum_of_gradients": ["sum_gradients"]}


def test_methods_of_a_class_that_only_its_author_knows_are_proposed_one_by_one(write: Write) -> None:
    ring = "class Ring:\n  def __init__(self, rank, world_size): self.rank = rank\n"
    ring += "  def all_reduce(self, tensor): return tensor\n  def helps(self, tensor): return tensor\n"
    implementation = load(write(ring + NAIVE))
    assert taken(implementation) == {"DataParallel": "NaiveDDP"}
    assert implementation.proposals() == {"Ring.all_reduce": ["all_reduce"]}
    table = write('all_reduce = "Ring.all_reduce"', "table.toml")
    assert taken(load(f"{implementation.path}?adapters={table}"))["all_reduce"] == "Ring.all_reduce"


def test_one_that_stands_under_a_name_and_is_an_import_is_told_with_its_owner(write: Write) -> None:
    borrowed = "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    implementation = load(write(borrowed + "def all_reduce(x): return x\n"))
    reason = implementation.reason("DataParallel")
    assert reason is not None
    assert reason.endswith("mine.py has no DataParallel of its own: DDP there is torch.nn.parallel.distributed's")
    used = load(write("from torch.distributed import broadcast\n" + NAIVE)).reason("broadcast")
    assert used is not None
    assert used.endswith("has no broadcast")


def test_a_cure_is_proposed_for_what_calls_itself_one(write: Write) -> None:
    implementation = load(
        write(
            "def broadcast_buffers(module): return module\ndef cure_for_a_missing_share(module): return module\n"
            + NAIVE
        )
    )
    assert implementation.proposals() == {
        "broadcast_buffers": ["broadcast_parameters"],
        "cure_for_a_missing_share": ["cure_missing_broadcast"],
    }


def test_parameters_are_told_with_what_they_are_handed(write: Write) -> None:
    implementation = load(write("def DDP(model, bucket_size_mb, verbose=True): return model\n"))
    assert implementation.bindings("DataParallel") == {
        "model": "module",
        "bucket_size_mb": "bucket_cap_mb",
        "verbose": "",
    }


MPI = """
class Communicator:
    def __init__(self, comm): self.comm = comm
    def Get_rank(self): return self.comm.Get_rank()
    def myAllreduce(self, src_array, dest_array, op="sum"): dest_array[:] = src_array
    def Bcast(self, buf, root=0): return buf
"""


def test_methods_of_a_communicator_are_known_by_their_parts(write: Write) -> None:
    """mpi4py's capitals, and whoever writes them again."""
    implementation = load(write(MPI))
    assert taken(implementation) == {
        "all_reduce": "Communicator.myAllreduce",
        "broadcast": "Communicator.Bcast",
    }
    assert implementation.bindings("all_reduce") == {
        "src_array": "tensor",
        "dest_array": "out",
        "op": "",
        "comm": "mesh",
    }


def test_two_methods_for_one_collective_are_both_named_and_none_is_taken(write: Write) -> None:
    """The wrapper around the library's own and the one that was homework: nobody knows which is meant."""
    text = MPI + "    def Allreduce(self, src_array, dest_array): self.comm.Allreduce(src_array, dest_array)\n"
    implementation = load(write(text))
    assert implementation.rivals() == {"all_reduce": ["Communicator.Allreduce", "Communicator.myAllreduce"]}
    path = write(text + 'adapters = {"all_reduce": "Communicator.myAllreduce"}\n')
    assert taken(load(path))["all_reduce"] == "Communicator.myAllreduce"


def test_letter_is_not_said_to_mean_what_is_far_away(write: Write) -> None:
    reason = load(write("def bcast(m): return m\n")).reason("broadcast")
    assert reason is not None
    assert "'m', which nothing is known to fill" in reason
    assert "microbatches" not in reason
