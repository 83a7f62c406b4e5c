"""The hand-ins of a course as they lie in a folder, and a copy of each that is what gets graded.

A file or a folder directly below the given one is a hand-in, whatever it is called. The copy holds what is its own: a
link that leads out of it is left out and named, so that nobody hands in a neighbour's file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

MOST_BYTES = 64 * 2**20  # of one hand-in: sources, not data sets
ANSWERS = ("impls.reference", "impls.torch_native")  # that the suite brings, and that anybody can import
_UNREAD = {
    (".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".rar", ".7z"): "an archive; unpack it into a folder",
    (".ipynb",): "a notebook; jupyter nbconvert --to script makes a Python file of it",
}
_NOT_OWN = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HandIn:
    """One entry of the folder."""

    name: str  # as the folder has it, with its suffix
    path: Path


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What is graded: where it lies, what it is, and what of the hand-in is not in it, a sentence each."""

    path: Path
    sha256: str  # empty where nothing could be copied
    left_out: tuple[str, ...]
    files: tuple[tuple[Path, str], ...] = ()  # of the copy, each with its SHA-256

    @property
    def is_intact(self) -> bool:
        """Whether all files of the copy are what was copied; others may have come, as a program writes some."""
        return all(_sha256_of(path) == sha256 for path, sha256 in self.files)


def find(folder: Path) -> tuple[list[HandIn], dict[str, str]]:
    """The hand-ins of a folder by name, and the names of what is none with the reason. Hidden entries are neither."""
    found: list[HandIn] = []
    others: dict[str, str] = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir() or (entry.is_file() and entry.suffix == ".py"):
            found.append(HandIn(name=entry.name, path=entry))
        else:
            others[entry.name] = _why_none(entry)
    return found, others


def copy(hand_in: HandIn, into: Path) -> Copied:
    """Copy it into the folder ``into``, which is made anew. Raises OSError where a file cannot be read or written."""
    if into.exists():
        shutil.rmtree(into)
    into.mkdir(parents=True)
    home = hand_in.path.resolve()  # the entry itself may be a link: that is the teacher's
    target = into / "".join(char if char.isprintable() else "_" for char in hand_in.name)  # as a report can name it
    digest = hashlib.sha256()
    left_out: list[str] = []
    files: list[tuple[Path, str]] = []
    if home.is_file():
        _copy_file(home, target)
        digest.update(target.read_bytes())
        sha256 = digest.hexdigest()
        return Copied(path=target, sha256=sha256, left_out=(), files=((target, sha256),))
    target.mkdir()
    room = MOST_BYTES
    for path in _files(home):
        below = path.relative_to(home)
        reason = _why_not(path, home, room)
        if reason:
            left_out.append(f"{below} {reason}")
            continue
        place = target / below
        place.parent.mkdir(parents=True, exist_ok=True)
        _copy_file(path, place)
        content = place.read_bytes()
        room -= len(content)
        files.append((place, hashlib.sha256(content).hexdigest()))
        digest.update(f"{below}\0{files[-1][1]}\0".encode("utf-8", "surrogateescape"))
    if not any(path.suffix == ".py" for path, _ in files):
        left_out += [f"{path.name} is {what}" for path, _ in files if (what := _unread(path.name))]
    return Copied(path=_heart(target), sha256=digest.hexdigest(), left_out=tuple(left_out), files=tuple(files))


def borrowed(copied: Copied) -> list[str]:
    """A sentence for each file that names the suite's own answers: a right one need not be its own work."""
    found = []
    for path, _ in copied.files:
        text = path.read_bytes().replace(b"/", b".")
        found += [f"{path.name} names {name}: is it its own work?" for name in ANSWERS if name.encode() in text]
    return found


def nothing(into: Path, error: OSError) -> Copied:
    """What stands in for a hand-in that could not be copied, with the reason."""
    into.mkdir(parents=True, exist_ok=True)
    return Copied(path=into, sha256="", left_out=(f"it could not be copied: {error.filename}: {error.strerror}",))


def _sha256_of(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _raise(error: OSError) -> NoReturn:
    """A folder that cannot be read is not an empty one."""
    raise error


def _files(home: Path) -> Iterator[Path]:
    """Every file and link of a folder in a fixed order; caches, installed packages and hidden folders left out."""
    for root, folders, files in os.walk(home, onerror=_raise):
        links = [name for name in folders if Path(root, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(links) - _NOT_OWN)
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(root, name) for name in sorted([*files, *links]) if not name.endswith(".pyc"))


def _why_none(entry: Path) -> str:
    """Why an entry of the folder is no hand-in, and what to do."""
    if entry.is_symlink() and not entry.exists():
        return "not read: a link that leads to nothing, or in a circle"
    return f"not read: {_unread(entry.name) or 'neither a Python file nor a folder'}"


def _unread(name: str) -> str:
    """What a file of this name is and how it becomes a hand-in; empty where that is not known."""
    return next((what for suffixes, what in _UNREAD.items() if name.lower().endswith(suffixes)), "")


def _why_not(path: Path, home: Path, room: int) -> str:
    """Why a file is not copied; empty when it is."""
    if not path.exists():
        return "is a link to nothing"
    if path.is_symlink() and not path.resolve().is_relative_to(home):
        return f"is a link to {path.resolve()}, outside of the hand-in"
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        return "is a link to a folder"
    if not stat.S_ISREG(status.st_mode):
        return "is no regular file"
    return f"is too large: a hand-in has {MOST_BYTES // 2**20} MiB at most" if status.st_size > room else ""


def _copy_file(path: Path, place: Path) -> None:
    """The content alone: no owner, no times, and writable, so that the copy can be removed."""
    shutil.copyfile(path, place)


def _heart(folder: Path) -> Path:
    """The folder with the sources: an unpacked archive often has one folder in it and nothing else."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    while len(entries) == 1 and entries[0].is_dir():
        folder = entries[0]
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    return folder
