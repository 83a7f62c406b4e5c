"""What ``--impl`` names, as one line of text: where it is, which of several it is, and what goes with it.

    ../homework/ddp.py                 a file, a folder, or a name: see `impls.locate`
    ddp.py:NaiveDDP                    of all that could be meant there, this one
    ddp.py:DataParallel=Wrapper        this one, for a name of the contract that its own does not tell
    ddp.py?adapters=table.toml         with a table of adapters beside it
    ddp.py?device=cpu                  with requests for cuda moved to the CPU

The text travels to the rank processes, and into the line that runs a check again.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from urllib.parse import parse_qsl, quote

DEVICE_SHIM = "cpu"  # the only device that requests can be moved to


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One implementation as it was asked for. `adapters` is the path of a TOML file, empty where there is none."""

    where: str
    only: str = ""
    adapters: str = ""
    device_shim: bool = False

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read the text; a path that exists is taken whole, whatever is in its name."""
        text = text.strip()
        if not text or _exists(text):
            return cls(where=text)
        where, _, query = text.partition("?")
        options = dict(parse_qsl(query))
        only = ""
        if not _exists(where) and ":" in where:
            where, _, only = where.rpartition(":")
        return cls(
            where=where,
            only=only,
            adapters=options.get("adapters", ""),
            device_shim=options.get("device") == DEVICE_SHIM,
        )

    def __str__(self) -> str:
        """The text again."""
        options = [f"adapters={quote(self.adapters)}"] if self.adapters else []
        options += [f"device={DEVICE_SHIM}"] if self.device_shim else []
        return self.label + ("?" + "&".join(options) if options else "")

    @property
    def label(self) -> str:
        """Where and which one, for people."""
        return f"{self.where}:{self.only}" if self.only else self.where


def _exists(path: str) -> bool:
    """Whether there is anything; what nobody lets us look at is told by whoever reads it."""
    try:
        return Path(path).expanduser().exists()
    except OSError:
        return True
