"""A script for a broken claim that shows the fault without Lockstep: thirty lines at most, plain torch or plain Python.

It loads the hand-in by its path, calls it as plainly as the claim allows, prints what is expected and what came out,
and ends with 1 when something is wrong. Where ranks are needed it starts as many as the broken case had, and names
those that do not come back. The texts are in ``scripts/``, and ``scripts/table.toml`` says which is for which claim; a
fault that needs more than plain use (an odd dtype, a strided tensor) has no script.
"""

from __future__ import annotations

import ast
import functools
import re
import string
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.checks import Description
from conformance.verdict import Result, Tier, Verdict

HOME = Path(__file__).parent / "scripts"
DEFAULT_NUM_RANKS = 3
HANG_S, PATIENCE_S = 10, 100  # how long ranks are waited for: those that hung, and those that are to say what is wrong
_PLAIN = "itertools, os, runpy, sys"
_RANKS = "copy, multiprocessing, os, runpy, sys, tempfile, time, torch, torch.distributed as dist"
_FINISH = (
    *("finish_gradient_synchronization", "sync_gradients", "sync_grads", "reduce_gradients"),
    *("synchronize", "finish"),
)
_FOUND = re.compile(r"(?P<name>\w+) \((?P<file>[^():]+):(?P<line>\d+)\)")
_SCHEDULE = re.compile(r"\b(gpipe|1f1b|zb_h1|zb_h2)\b")


def script(result: Result, asks: Sequence[str], description: Description | None) -> str | None:
    """The text of the script for one broken case, or None where its claim, its function or its file has none.

    ``asks`` are the names of the contract that the case needs, ``description`` says where the hand-in has them.
    """
    if not result.verdict.is_broken or description is None:
        return None
    for name in (name for asked in reversed(asks) for name in asked.split("|")):
        found = _FOUND.fullmatch(description.spellings.get(name, ""))
        path = found and _file(Path(description.path), found)
        entry = _entry(result, name)
        words = _words(description.bindings.get(name, {}))
        if found and path and entry is not None and _can_be_called(entry, words):
            return _filled(entry, name, result, found["name"], path, words)
    return None


def scripts(
    results: Sequence[Result], asks: Sequence[Sequence[str]], descriptions: Mapping[str, Description]
) -> dict[tuple[str, str], tuple[str, str]]:
    """By implementation and claim, the case and the text of one script: for the broken case that is the plainest."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    pairs = sorted(zip(results, asks, strict=True), key=lambda pair: _plainness(pair[0]))
    for result, names in pairs:
        if (result.impl, result.claim) not in found:
            text = script(result, names, descriptions.get(result.impl))
            if text is not None:
                found[result.impl, result.claim] = (result.case, text)
    return found


def _plainness(result: Result) -> tuple[int, int, str]:
    """Core cases first; of these few ranks, but more than two, which hide much."""
    size = result.data.get("world_size", DEFAULT_NUM_RANKS)
    return ("core", "contract", "exotic").index(result.tier), abs(size - DEFAULT_NUM_RANKS), result.case


@functools.cache
def _table() -> tuple[dict[str, Any], ...]:
    return tuple(tomllib.loads((HOME / "table.toml").read_text(encoding="utf-8"))["script"])


def _entry(result: Result, name: str) -> dict[str, Any] | None:
    """The line of the table for a claim and a name of the contract, with what is said of this name alone."""
    for entry in _table():
        if not re.fullmatch(entry["claims"], result.claim) or name not in entry["functions"]:
            continue
        # Without ranks there is no limit of time. On them, what is asked for beyond core is more than plain use.
        can_show = result.tier is Tier.CORE if entry.get("ranks") else result.verdict is not Verdict.HANGS
        if can_show and re.search(entry.get("cases", ""), result.case):
            return {**entry, **entry["functions"][name]}
    return None


def _can_be_called(entry: Mapping[str, Any], words: Mapping[str, str]) -> bool:
    """Whether what the function takes is what the script has to give."""
    return (
        bool(words) and words.keys() >= set(entry.get("needs", ())) and words.keys().isdisjoint(entry.get("never", ()))
    )


def _words(bindings: Mapping[str, str]) -> dict[str, str]:
    """By name of the contract, what the hand-in calls the parameter; what goes into its ``**kwargs`` keeps its name."""
    words: dict[str, str] = {}
    for parameter, given in bindings.items():
        words |= {key: key for key in ast.literal_eval(given)} if given.startswith("{") else {given: parameter}
    return words | ({"lr": "lr"} if "optimizer_cls" in words else {})  # options go where the class goes


def _filled(
    entry: Mapping[str, Any], name: str, result: Result, spelling: str, path: Path, words: Mapping[str, str]
) -> str:
    ranks = entry.get("ranks", False)
    size = max(result.data.get("world_size", DEFAULT_NUM_RANKS), entry.get("least", 2))
    schedule = _SCHEDULE.search(result.case)
    about = f"{result.claim}: {spelling} of {path.name}" + f" on {size} ranks" * ranks
    values = {
        **entry,
        "about": about.replace("\\", "/").replace('"', "'"),
        "imports": (_RANKS if ranks else _PLAIN) + ", torch._dynamo" * entry.get("warm", False),
        "path": repr(str(path)),
        "name": repr(spelling),
        "called": spelling,
        "bare": spelling.removeprefix("get_"),  # of functions around a step
        "num_ranks": size,
        "limit_s": HANG_S if result.verdict is Verdict.HANGS else PATIENCE_S,
        "length": f"{2 * size + 1}.0",
        "finish": repr(_FINISH),
        "schedule": schedule[1] if schedule else "1f1b",
    }
    parts = ["head", *["head_ranks"] * ranks, *entry["parts"], "tail_ranks" if ranks else "tail"]
    return _called(string.Template("".join(map(_text, parts))).substitute(values), words)


def _called(text: str, words: Mapping[str, str]) -> str:
    """The script with every call of ``ours`` reduced to the arguments that the hand-in takes, under its own names."""
    lines = text.splitlines(keepends=True)
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    for call in [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "ours"]:
        given = [(word.arg or "", ast.unparse(word.value)) for word in call.keywords]
        arguments = ", ".join(f"{words[key]}={value}" for key, value in given if key in words)
        row = call.lineno - 1
        line = lines[row].encode()
        lines[row] = (line[: call.col_offset] + f"ours({arguments})".encode() + line[call.end_col_offset :]).decode()
    return "".join(lines)


@functools.cache
def _text(name: str) -> str:
    return (HOME / f"{name}.txt").read_text(encoding="utf-8")


def _file(path: Path, found: re.Match[str]) -> Path | None:
    """The file of a hand-in in which a name is defined; None for what it takes from elsewhere."""
    if path.is_file():
        return path if path.name == found["file"] else None
    return next((file for file in sorted(path.rglob(found["file"])) if _defines(file, found)), None)


def _defines(file: Path, found: re.Match[str]) -> bool:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return found["name"] in "".join(lines[int(found["line"]) - 1 : int(found["line"])])
