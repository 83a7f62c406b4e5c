"""Finding an implementation without running a line of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from impls.locate import (
    BrokenSyntax,
    EmptyFolder,
    ImplementationError,
    Kind,
    NotPython,
    ProvidesNothing,
    UnknownImplementation,
    bundled,
    locate,
    manifest_of,
    mutants,
)

RING = "def ring_allreduce(tensor): return tensor\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(spec: str) -> ImplementationError:
    with pytest.raises(ImplementationError) as caught:
        locate(spec)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"--impl={spec}: ")
    return caught.value


def test_bundled_implementations_are_found_by_name() -> None:
    assert bundled()[:2] == ["reference", "torch"]
    assert (locate("torch").module, locate("torch").kind) == ("impls.torch_native", Kind.BUNDLED)
    assert "template" not in bundled()


@pytest.mark.parametrize("name", mutants()[:1])
def test_mutants_are_found_with_a_slash_or_a_dot(name: str) -> None:
    assert locate(name).kind is Kind.MUTANT
    assert locate(name.replace("/", ".")).path == locate(name).path


def test_a_file_is_found_and_not_run(folder: Path) -> None:
    Path("mine.py").write_text(RING + "raise SystemExit('it was run')\n")
    located = locate("mine.py")
    assert (located.name, located.kind, located.candidates) == ("mine.py", Kind.FILE, (folder / "mine.py",))


def test_a_link_in_a_circle_is_told_as_one(folder: Path) -> None:
    Path("mine.py").symlink_to("mine.py")
    assert "mine.py is a link that leads to nothing, or in a circle" in str(refusal("mine.py"))


def test_a_folder_that_may_not_be_read_is_not_said_to_be_empty(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "mine cannot be read: Permission denied" in str(refusal("mine/"))


def test_a_path_that_may_not_be_looked_at_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    monkeypatch.setattr(Path, "is_symlink", refuse)
    assert "closed/ddp.py cannot be read: Permission denied" in str(refusal("closed/ddp.py"))


def test_in_a_folder_only_the_files_that_define_something_are_taken(folder: Path) -> None:
    for name, text in {
        "ddp.py": "class DDP: pass\n",
        "launch.py": "import ddp\n",
        "imports.py": "from torch.distributed import all_reduce, broadcast\n",
        "guarded.py": "if True:\n    from ddp import DDP as DistributedDataParallel\n",
        "test_ddp.py": RING,
        "notes.txt": "",
    }.items():
        Path(name).write_text(text)
    assert [path.name for path in locate(".").candidates] == ["ddp.py", "guarded.py"]


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        ("referense", UnknownImplementation, "Did you mean reference?"),
        ("toch", UnknownImplementation, "Did you mean torch?"),
        ("hmework/ddp.py", UnknownImplementation, "There are reference, torch"),
        ("homework/dpd.py", UnknownImplementation, "Did you mean homework/ddp.py?"),
        ("", UnknownImplementation, "no implementation"),
        ("empty", EmptyFolder, "has no Python module"),
        ("notes.txt", NotPython, "notes.txt is not a Python file"),
        ("nothing.py", ProvidesNothing, "defines none of the names"),
        ("scripts", ProvidesNothing, "defines none of the names"),
        ("repository", EmptyFolder, "can be checked: '--impl=repository/my package/ddp.py'."),
        ("with a script", ProvidesNothing, "can be checked: '--impl=with a script/package/ring.py'."),
        ("unnamed.py", ProvidesNothing, "It has Adder, add_up."),
        ("broken.py", BrokenSyntax, "broken.py:2: "),
        ("nul.py", BrokenSyntax, "nul.py"),
        ("latin.py", BrokenSyntax, "latin.py"),
        ("my ring.ipynb", NotPython, "jupyter nbconvert --to script 'my ring.ipynb', then give 'my ring.py'."),
        ("notebooks", EmptyFolder, "jupyter nbconvert --to script "),
        ("magic.py", BrokenSyntax, "Only a notebook can run magic.py:1, 2. Delete such lines"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_sentence(
    folder: Path, spec: str, error: type[ImplementationError], words: str
) -> None:
    for path, text in {
        "homework/ddp.py": RING,
        "notes.txt": "",
        "nothing.py": "x = 1\n",
        "scripts/launch.py": "print()\n",
        "repository/my package/ddp.py": "class DDP: pass\n",
        "repository/my package/test_ddp.py": RING,
        "with a script/launch.py": "print()\n",
        "with a script/package/ring.py": RING,
        "unnamed.py": "class Adder: pass\ndef add_up(tensor): pass\ndef _own(): pass\n",
        "broken.py": RING + "def tree_allreduce(:\n",
        "nul.py": RING + "\0",
        "my ring.ipynb": "{}",
        "notebooks/ring.ipynb": "{}",
        "magic.py": "!pip install torch\n%matplotlib inline\n" + RING,
    }.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    Path("latin.py").write_bytes(RING.encode() + "x = 'é'".encode("latin-1"))
    Path("empty").mkdir()
    refused = refusal(spec)
    assert type(refused) is error
    assert re.search(re.escape(words), str(refused))


def test_the_digest_follows_the_sources_and_nothing_else(folder: Path) -> None:
    Path("mine").mkdir()
    Path("mine/ring.py").write_text(RING)
    before = locate("mine").sha256
    Path("mine/data.csv").write_text("1")
    Path("mine/.venv").mkdir()
    Path("mine/.venv/x.py").write_text("")
    assert locate("mine").sha256 == before
    Path("mine/helper.py").write_text("")
    assert locate("mine").sha256 != before


def test_a_manifest_is_read_without_import(folder: Path) -> None:
    Path("mine.py").write_text(RING + 'MANIFEST: dict = {"deviates": {"x": {"reason": "r"}}}\nraise SystemExit\n')
    assert manifest_of(locate("mine.py")) == {"deviates": {"x": {"reason": "r"}}}
    Path("mine.py").write_text(RING + "MANIFEST = dict()\n")
    assert manifest_of(locate("mine.py")) == {}


def test_file_that_ends_the_process_when_it_is_imported_is_told_with_its_line(folder: Path) -> None:
    (folder / "ends.py").write_text("import sys\n\nsys.exit(0)\n")
    with pytest.raises(ProvidesNothing, match=r"ends\.py:3 ends the process .*SystemExit"):
        locate("ends.py")
