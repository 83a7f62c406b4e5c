"""What lies in a folder is a hand-in, or is told why it is none; what cannot be read is never taken for empty."""

from __future__ import annotations

import os

import pytest

from conformance.grading import hand_ins
from conformance.grading.hand_ins import HandIn


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Ana.ZIP", "an archive; unpack"),
        ("bob.tar.gz", "an archive; unpack"),
        ("ring.ipynb", "jupyter nbconvert"),
        ("essay.pdf", "neither a Python file nor a folder"),
    ],
)
def test_file_that_is_no_hand_in_has_its_reason(tmp_path, name, told):
    (tmp_path / name).touch()
    found, others = hand_ins.find(tmp_path)
    assert found == []
    assert told in others[name]


def test_folder_without_sources_is_said_to_hold_what_could_be_made_into_some(tmp_path):
    (tmp_path / "ana").mkdir()
    (tmp_path / "ana" / "work.zip").touch()
    (tmp_path / "ana" / "notes.txt").touch()
    copied = hand_ins.copy(HandIn(name="ana", path=tmp_path / "ana"), tmp_path / "copy")
    assert copied.left_out == ("work.zip is an archive; unpack it into a folder",)


def test_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    (tmp_path / "ana" / "closed").mkdir(parents=True)
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(PermissionError):
        hand_ins.copy(HandIn(name="ana", path=tmp_path / "ana"), tmp_path / "copy")
