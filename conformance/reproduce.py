"""A script for a broken claim that shows the fault without Lockstep: plain torch.distributed, thirty lines at most.

It loads the hand-in by its path, starts as many processes as the broken case had, and prints what is expected and what
came out. It shows the plainest use of the function that the case is about; a fault that needs more than that (an odd
dtype, a strided tensor, a hang) has no script. The templates are in ``scripts/``.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.checks import Description
from conformance.verdict import Result, Tier, Verdict

HOME = Path(__file__).parent / "scripts"
DEFAULT_NUM_RANKS = 3
_SUM = "sum(inputs)"
_PART = "sum(inputs).tensor_split(N)[rank]"
_EXPECTED = {
    **dict.fromkeys(("ring_allreduce", "tree_allreduce", "all_reduce"), _SUM),
    **dict.fromkeys(("ring_allgather", "all_gather"), "torch.cat(inputs)"),
    **dict.fromkeys(("ring_reduce_scatter", "reduce_scatter"), _PART),
    **dict.fromkeys(("tree_broadcast", "broadcast"), "inputs[N - 1]"),
}
_TEMPLATES = {
    **dict.fromkeys(_EXPECTED, "collectives"),
    "DataParallel": "data_parallel",
    "ShardedOptimizer": "sharded_optimizer",
    "fully_shard": "fully_shard",
}
# Claims about values: what these functions return or leave behind, and not how.
_CLAIMS = re.compile(
    r"collectives\.values\..*|loop\.(mean|construct-broadcast|step)|zero\.equivalence|faq\.mean-not-sum"
)
_FOUND = re.compile(r"(?P<name>\w+) \((?P<file>[^():]+):\d+\)")


def script(result: Result, asks: Sequence[str], description: Description | None) -> str | None:
    """The text of the script for one broken case, or None where its claim, its function or its file has none.

    ``asks`` are the names of the contract that the case needs, ``description`` says where the hand-in has them.
    """
    if result.verdict is not Verdict.VIOLATED or description is None or not _CLAIMS.fullmatch(result.claim):
        return None
    if result.tier is not Tier.CORE:  # the plainest use is right then: the script would show nothing
        return None
    names = [name for asked in reversed(asks) for name in asked.split("|") if name in _TEMPLATES]
    for name in names:
        found = _FOUND.fullmatch(description.spellings.get(name, ""))
        path = found and _file(Path(description.path), found["file"])
        if found and path:
            return _filled(name, result, found["name"], path)
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


def _filled(name: str, result: Result, spelling: str, path: Path) -> str:
    size = result.data.get("world_size", DEFAULT_NUM_RANKS)
    values = {
        "about": f"{result.claim}: {spelling} of {path.name} on {size} ranks".replace("\\", "/").replace('"', "'"),
        "path": repr(str(path)),
        "name": repr(spelling),
        "num_ranks": size,
        "length": f"{2 * size + 1}.0",
        "expected": _EXPECTED.get(name, ""),
    }
    return _template("head").substitute(values) + _template(_TEMPLATES[name]).substitute(values)


@functools.cache
def _template(name: str) -> string.Template:
    return string.Template((HOME / f"{name}.txt").read_text(encoding="utf-8"))


def _file(path: Path, name: str) -> Path | None:
    """The file of a hand-in in which a name is defined; None for what it takes from elsewhere."""
    if path.is_file():
        return path if path.name == name else None
    return path / name if (path / name).is_file() else None
