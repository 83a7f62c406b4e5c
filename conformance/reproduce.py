"""A script for a broken claim that shows the fault without Lockstep: thirty lines at most, plain torch or plain Python.

It loads the hand-in by its path, calls it as plainly as the claim allows, prints what is expected and what came out,
and ends with 1 when something is wrong. Where ranks are needed it starts as many as the broken case had, and names
those that do not come back. The texts are in ``scripts/``, and ``scripts/table.toml`` says which is for which claim.
"""

from __future__ import annotations

import ast
import functools
import re
import string
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from conformance.checks import Description
from conformance.scripts.opening import HOME, HandIn, text_of
from conformance.verdict import Result, Tier, Verdict

DEFAULT_NUM_RANKS = 3
MAX_LINES = 30
HANG_S, PATIENCE_S = 10, 100  # how long ranks are waited for: those that hung, and those that are to say what is wrong
_PLAIN = ("itertools", "os", "runpy", "sys")
_RANKS = (
    *("copy", "multiprocessing", "os", "runpy", "sys", "tempfile", "time", "torch"),
    "torch.distributed as dist",
)
_FINISH = (
    *("finish_gradient_synchronization", "sync_gradients", "sync_grads", "reduce_gradients"),
    *("synchronize", "finish"),
)
_FILL_SHARDS = "[own.data.copy_(mine_of(own, whole, rank)) for _, own, whole in pairs]"
_SCHEDULE = re.compile(r"\b(gpipe|1f1b|zb_h1|zb_h2|interleaved_1f1b|zbv|dualpipev|dualpipe)\b")
_OPTIONS = ("lr", "momentum", "weight_decay", "betas", "eps")
_IF_ASKED = frozenset({"out", "chunks"})  # arguments that are given to those alone who cannot do without


def script(result: Result, asks: Sequence[str], description: Description | None) -> str | None:
    """The text of the script for one broken case, or None where its claim, its function or its file has none.

    ``asks`` are the names of the contract that the case needs, ``description`` says where the hand-in has them.
    """
    return next(_scripts(result, asks, description), None) if result.verdict.is_broken and description else None


def _scripts(result: Result, asks: Sequence[str], description: Description) -> Iterator[str]:
    """For each name that the case is about; those that the hand-in defines itself, where there are some."""
    names = _names(result.claim, asks)
    own = [name for name in names if description.reach.get(name, {}).get("is_own", False)]
    for name in dict.fromkeys(own or names):
        hand_in = HandIn.of(name, description.reach)
        if hand_in is None or not hand_in.file.is_file():
            continue
        words = _words(description.bindings.get(name, {}))
        for entry in (entry for entry in _entries(result, name) if _can_be_called(entry, words)):
            text = _Filling(entry, name, result, hand_in, words, description.averages).text()
            if text is not None:
                yield text


def _names(claim: str, asks: Sequence[str]) -> list[str]:
    """The names of the contract that a case may be about."""
    names = [name for asked in reversed(asks) for name in asked.split("|")]
    lines = [entry for entry in _table() if entry.get("unasked") and re.fullmatch(entry["claims"], claim)]
    return names + [name for entry in lines for name in entry["functions"]]


def scripts(
    results: Sequence[Result], asks: Sequence[Sequence[str]], descriptions: Mapping[str, Description]
) -> dict[tuple[str, str], tuple[str, str]]:
    """By implementation and claim, the case and the text of one script: for the broken case that is the plainest."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    pairs = sorted(zip(results, asks, strict=True), key=lambda pair: plainness(pair[0]))
    for result, names in pairs:
        if (result.impl, result.claim) not in found:
            text = script(result, names, descriptions.get(result.impl))
            if text is not None:
                found[result.impl, result.claim] = (result.case, text)
    return found


def plainness(result: Result) -> tuple[int, int, str]:
    """Core cases first; of these few ranks, but more than two, which hide much."""
    size = result.data.get("world_size", DEFAULT_NUM_RANKS)
    return ("core", "contract", "exotic").index(result.tier), abs(size - DEFAULT_NUM_RANKS), result.case


def has_line(claim: str) -> bool:
    """Whether there is any script for a claim."""
    return any(re.fullmatch(entry["claims"], claim) for entry in _table())


def has_case(result: Result, asks: Sequence[str]) -> bool:
    """Whether there is a script for a case, if the hand-in can be called as it wants."""
    return any(True for name in _names(result.claim, asks) for _ in _entries(result, name))


@functools.cache
def _table() -> tuple[dict[str, Any], ...]:
    return tuple(tomllib.loads((HOME / "table.toml").read_text(encoding="utf-8"))["script"])


def _entries(result: Result, name: str) -> Iterator[dict[str, Any]]:
    """The lines of the table for a claim and a name of the contract, with what is said of this name alone."""
    for entry in _table():
        if not re.fullmatch(entry["claims"], result.claim) or name not in entry["functions"]:
            continue
        # Without ranks there is no limit of time. A line that names no cases is for plain use, which is core.
        if result.verdict is Verdict.HANGS and not entry.get("ranks"):
            continue
        if not result.data.keys() >= set(entry.get("evidence", ())):
            continue
        plain = result.tier is Tier.CORE or not entry.get("ranks") or entry.get("any_tier", False)
        if plain and re.search(entry.get("cases", ""), result.case):
            fillings = [line for line in entry.get("fill", ()) if re.search(line["cases"], result.case)]
            yield functools.reduce(
                lambda so_far, line: {**so_far, **line}, fillings, {**entry, **entry["functions"][name]}
            )


def _can_be_called(entry: Mapping[str, Any], words: Mapping[str, str]) -> bool:
    """Whether what the function takes is what the script has to give."""
    has_all = words.keys() >= set(entry.get("needs", ())) and words.keys().isdisjoint(entry.get("never", ()))
    return has_all and (bool(words) or entry.get("is_constant", False))


def _words(bindings: Mapping[str, str]) -> dict[str, str]:
    """By name of the contract, what the hand-in calls the parameter; what goes into its ``**kwargs`` keeps its name."""
    words: dict[str, str] = {}
    for parameter, given in bindings.items():
        words |= {key: key for key in ast.literal_eval(given)} if given.startswith("{") else {given: parameter}
    if "world_size" in words:  # the ranks of a schedule and of a bubble are its stages
        words.setdefault("num_stages", words["world_size"])
    return words | ({key: key for key in _OPTIONS} if "optimizer_cls" in words else {})  # they go where the class goes


class _Filling:
    """One script in the making."""

    def __init__(
        self,
        entry: Mapping[str, Any],
        name: str,
        result: Result,
        hand_in: HandIn,
        words: Mapping[str, str],
        averages: bool,
    ) -> None:
        self._entry, self._name, self._result, self._hand_in = entry, name, result, hand_in
        self._words = {own: word for own, word in words.items() if own not in _IF_ASKED or word in hand_in.required}
        self._has_ranks = entry.get("ranks", False)
        self._averages = averages

    def text(self) -> str | None:
        """The whole text; None where it would be too long, or lack an argument."""
        body = "".join(self._hand_in.mesh() if part == "mesh" else text_of(part) for part in self._entry["parts"])
        values = self._values()
        given = _given(string.Template(string.Template(body).substitute(values)).substitute(values))
        bound = {self._words[key] for key in given if key in self._words}
        if not bound.issuperset(self._hand_in.required):
            return None
        values["ours"] = self._hand_in.ours(self._words, given)
        kind = "ranks" if self._has_ranks else "plain"
        before = [
            *map(text_of, ["head", f"head_{kind}"]),
            self._hand_in.adaptation,
            *map(text_of, self._entry.get("before", ())),
        ]
        whole = "".join([*before, "${ours}", text_of(f"show_{kind}"), body, text_of(f"tail_{kind}")])
        for _ in range(2):  # what is filled in may have places of its own
            whole = string.Template(whole).substitute(values)
        text = _called("".join(line for line in whole.splitlines(keepends=True) if line.strip()), self._words)
        return text if len(text.splitlines()) <= MAX_LINES else None

    def _values(self) -> dict[str, Any]:
        size = max(self._result.data.get("world_size", DEFAULT_NUM_RANKS), self._entry.get("least", 2))
        size = self._entry.get("num_ranks", size)
        schedule = _SCHEDULE.search(self._result.case)
        path, called = self._hand_in.file, self._called_by()
        about = f"{self._result.claim}: {called} of {path.name}" + f" on {size} ranks" * self._has_ranks
        imports = [*(_RANKS if self._has_ranks else _PLAIN), *self._entry.get("imports", ()), *self._hand_in.imports]
        return {
            "total": "sum(inputs) / N" if self._averages else "sum(inputs)",
            "input": f"torch.arange({2 * size + 1}.0) * 1.5 + 10 * r",
            "alike": "expected.shape == observed.shape and expected.allclose(observed)",
            "left": "out" if "out" in self._words else "chunks[rank]" if "chunks" in self._words else "mine",
            **{key: value for key, value in self._entry.items() if isinstance(value, str | int)},
            "about": about.replace("\\", "/").replace('"', "'"),
            "imports": ", ".join(dict.fromkeys(imports)),
            "path": repr(str(path)),
            "called": called,
            "bare": called.removeprefix("get_"),  # of functions around a step
            "num_ranks": size,
            "limit_s": self._entry.get("limit_s", HANG_S if self._result.verdict is Verdict.HANGS else PATIENCE_S),
            # A layer that is built from sizes has weights of its own.
            "fill_shards": "" if "module" in self._words else _FILL_SHARDS,
            "finish": repr(_FINISH),
            "begin": self._hand_in.begin,
            "schedule": schedule[1] if schedule else "1f1b",
            "configuration": self._result.data.get("configuration", {}),
        }

    def _called_by(self) -> str:
        found = re.findall(r"\w+", self._hand_in.names)
        name = self._name if "adapters" in found else ".".join(found[1:])
        return f"{name}.{self._hand_in.method}" if self._hand_in.method else name


def _given(text: str) -> Collection[str]:
    """The names of all arguments with which a text calls ``ours``."""
    return {word.arg or "" for call in _calls(text) for word in call.keywords}


def _calls(text: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "ours"]


def _called(text: str, words: Mapping[str, str]) -> str:
    """The script with every call of ``ours`` reduced to the arguments that the hand-in takes, under its own names."""
    lines = text.splitlines(keepends=True)
    for call in sorted(_calls(text), key=lambda call: (call.lineno, -call.col_offset)):
        given = [(word.arg or "", ast.unparse(word.value)) for word in call.keywords]
        arguments = ", ".join(f"{words[key]}={value}" for key, value in given if key in words)
        row = call.lineno - 1
        line = lines[row].encode()
        lines[row] = (line[: call.col_offset] + f"ours({arguments})".encode() + line[call.end_col_offset :]).decode()
    return "".join(lines)
