from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.files import CannotWrite, write_together, write_whole


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file of this process may grow beyond 4 KiB; a longer write fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


def test_folders_are_made_and_text_is_utf8(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b.txt", "سلام\n")
    assert (tmp_path / "a" / "b.txt").read_bytes() == "سلام\n".encode()


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, full_disk: None) -> None:
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(CannotWrite, match=r"report\.json could not be written"):
        write_whole(path, "x" * 100_000)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_no_file_takes_its_place_when_another_cannot_be_written(tmp_path: Path, full_disk: None) -> None:
    texts = {tmp_path / "report.json": "new", tmp_path / "report.html": "x" * 100_000}
    with pytest.raises(CannotWrite, match=r"report\.html"):
        write_together(texts)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", encoding="utf-8")
    with pytest.raises(CannotWrite, match="could not be written"):
        write_whole(tmp_path / "out" / "report.json", "")


def test_a_folder_in_the_place_of_the_file_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    with pytest.raises(CannotWrite):
        write_whole(tmp_path / "report.json", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
