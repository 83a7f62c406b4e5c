"""The lines with which a script loads a hand-in and adapts it: everything that a table of adapters says, written out.

The hand-in's own file is loaded by its path, or as a module of its package where it imports its neighbours relatively.
What it needs from outside of it is in the lines themselves: stand-ins, a device, arrays for tensors, mpi4py's names.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib.util
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent
_MPI = re.compile(r"\.(Send|Recv|Sendrecv|Isend|Irecv|Get_rank|Get_size)\b")
_DEFINED = re.compile(r"    ([\w, ]+?) = ")  # what a line of a class defines
_ITS_OWN = re.compile(r"\.(rank|size)\b")
_AS_ARRAYS = {"tensor": "{}.numpy()", "out": "{}.numpy()", "chunks": "[x.numpy() for x in {}]"}
_CUDA = (
    *("set_device", "synchronize", "empty_cache", "device_count", "current_device", "memory_allocated"),
    *("max_memory_allocated", "Stream", "Event", "stream", "current_stream", "default_stream"),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HandIn:
    """One name of the contract in a hand-in, as a script gets at it (`impls.reach`)."""

    file: Path
    names: str
    required: tuple[str, ...]
    before: Mapping[str, Any]
    owner: tuple[str, ...] = ()  # of a method: the parameters of its class
    method: str = ""
    arrays: bool = False

    @classmethod
    def of(cls, name: str, reach: Mapping[str, Mapping[str, Any]]) -> HandIn | None:
        """What the description says of a name; None where a script cannot get at it."""
        found, before = reach.get(name, {}), reach.get("", {})
        state = before.get("initialize")
        if not found or "left_out" in before or (state and state[1] != found["file"]):
            return None
        return cls(
            file=Path(found["file"]),
            names=found["names"],
            required=tuple(found.get("required", ())),
            before=before,
            owner=tuple(found.get("owner", ())),
            method=found.get("method", ""),
            arrays=found.get("arrays", False),
        )

    @property
    def has_mpi_names(self) -> bool:
        """Whether it calls its links as mpi4py's communicators are called."""
        return bool(_MPI.search(_text(self.file)))

    @property
    def is_relative(self) -> bool:
        """Whether it is to be imported as a part of its package."""
        nodes = ast.walk(ast.parse(_text(self.file)))
        return self.file.stem == "__init__" or any(isinstance(node, ast.ImportFrom) and node.level for node in nodes)

    @property
    def folders(self) -> list[str]:
        """Where it finds its neighbours: its own folder, and the one above its package; those that it needs."""
        folders = dict.fromkeys([self.file.parent, self._root])
        names = {name.partition(".")[0] for name in _imported(ast.parse(_text(self.file)))}
        return [
            str(folder)
            for folder in folders
            if any((folder / name).is_dir() or (folder / f"{name}.py").exists() for name in names)
            or (self.is_relative and folder == self._root)
        ]

    @property
    def _root(self) -> Path:
        folder = self.file.parent
        while (folder / "__init__.py").exists() and folder != folder.parent:
            folder = folder.parent
        return folder.parent if folder == self.file.parent and self.is_relative else folder

    @property
    def load(self) -> str:
        """The names of its module, as an expression."""
        if not self.is_relative:
            return "runpy.run_path(PATH)"
        parts = self.file.relative_to(self._root).with_suffix("").parts
        dotted = ".".join(part for part in parts if part != "__init__")
        return f"vars(importlib.import_module({dotted!r}))"

    def ours(self, words: Mapping[str, str], given: Collection[str]) -> str:
        """The lines that define ``names``, and ``ours``: what is called with arguments of the hand-in's own names."""
        value = self.names.replace("names", f"(names := {self.load})", 1)
        own = [words[key] for key in words if key in given]
        if not self.method and not self.arrays:
            return f"ours = {value}\n"
        handed = _AS_ARRAYS if self.arrays else {}
        listed = {
            words[key]: f"{words[key]}={handed.get(key, '{}').format(words[key])}" for key in words if key in given
        }
        call = f"theirs({', '.join(listed.values())})"
        if self.method:
            first = ", ".join(text for name, text in listed.items() if name in self.owner)
            rest = ", ".join(text for name, text in listed.items() if name not in self.owner)
            call = f"theirs({first}).{self.method}({rest})"
        call = f"tensor({call})" if self.arrays else call
        return f"theirs = {value}\n{text_of('arrays') if self.arrays else ''}ours = lambda {', '.join(own)}: {call}\n"

    @property
    def adaptation(self) -> str:
        """The lines before it is loaded."""
        lines = f"sys.path += {self.folders}\n" if self.folders else ""
        if stubs := self.before.get("stubs", ()):
            lines += text_of("stubs").replace("$stubs", repr(self._replaced(stubs)))
            lines += "".join(f"{name} = sys.modules[{name!r}]\n" for name in stubs if name.startswith("torch."))
        return lines + (text_of("shim").replace("$cuda", repr(_CUDA)) if self.before.get("shim") else "")

    def _replaced(self, stubs: Collection[str]) -> list[str]:
        """The stubs, and the modules below them that it imports."""
        imported = _imported(ast.parse(_text(self.file)))
        return [*stubs, *sorted(name for name in imported for stub in stubs if name.startswith(f"{stub}."))]

    @property
    def imports(self) -> list[str]:
        """The modules that these lines need."""
        needed = {
            "importlib": self.is_relative,
            "types": "stubs" in self.before or self.has_mpi_names,
            "numpy": self.arrays or self.has_mpi_names,
            "unittest.mock": "shim" in self.before,
            "torch": any(name.startswith("torch.") for name in self.before.get("stubs", ()))
            or self.arrays
            or "shim" in self.before,
        }
        return [name for name, is_needed in needed.items() if is_needed]

    @property
    def begin(self) -> str:
        """What a rank does before anything else."""
        if "initialize" not in self.before:
            return ""
        name, _, parameters = self.before["initialize"]
        values = {"rank": "rank", "world_size": "N", "group": "dist.group.WORLD"}
        given = ", ".join(f"{own}={values[key]}" for own, key in parameters.items() if key in values)
        return f"names[{name!r}]({given}), "

    def mesh(self) -> str:
        """The links between ranks, with the names that it uses."""
        if not self.has_mpi_names:
            return text_of("mesh")
        used = {*_MPI.findall(_text(self.file)), *_ITS_OWN.findall(_text(self.file))}
        used |= {"Send", "Recv"} if used & {"Sendrecv", "Isend", "Irecv"} else set()
        lines = text_of("mesh_mpi").splitlines(keepends=True)
        names = [(line, _DEFINED.match(line)) for line in lines]
        return "".join(line for line, found in names if found is None or set(found[1].split(", ")) & used)


@functools.cache
def text_of(name: str) -> str:
    """One of the texts."""
    return (HOME / f"{name}.txt").read_text(encoding="utf-8")


@functools.cache
def _text(file: Path) -> str:
    return importlib.util.decode_source(file.read_bytes())  # with its mark of byte order, and the encoding it names


def _imported(tree: ast.Module) -> set[str]:
    """The modules that are imported absolutely."""
    found = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    found += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    return set(found) - {""}
