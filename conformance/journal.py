"""What workers leave for the controller: one append-only file each, one JSON object per line.

A run without workers keeps its lines in memory, where no other process of the same user can add to them. Every line is
one ``write`` to a file opened for appending, so that a worker that is killed loses at most the line it was writing. The
reader takes what is whole. The last result of a check counts (a teardown may overrule its call).
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.verdict import RankReport, Result, ScenarioStory, Text, Tier, Verdict, Waiting, to_json


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A check that the run set out to do: one claim, one implementation, one case."""

    nodeid: str
    claim: str
    case: str
    tier: Tier
    impl: str
    rerun: str
    scenario: str | None = None
    asks: tuple[str, ...] = ()  # names of the contract that the case needs, `a|b` for either
    despite: tuple[str, ...] = ()  # needs of the claim whose wrong values cannot show in this case
    alone: bool = False  # wrong values in this case block no claim that needs this one


@dataclasses.dataclass(slots=True, kw_only=True)
class Gathered:
    """All journals together."""

    planned: dict[str, Planned] = dataclasses.field(default_factory=dict)  # by node id, in order of collection
    started: set[str] = dataclasses.field(default_factory=set)
    results: dict[str, Result] = dataclasses.field(default_factory=dict)
    stories: dict[str, ScenarioStory] = dataclasses.field(default_factory=dict)
    world_sizes: set[int] = dataclasses.field(default_factory=set)


class Journal:
    """One worker's file in the folder of the run, or the memory of a process that has no workers."""

    def __init__(self, folder: Path | None, worker: str) -> None:
        self._path = None if folder is None else folder / f"{worker}-{os.getpid()}.jsonl"
        self._file: int | None = None
        self.kept: list[bytes] = []

    def planned(self, checks: list[Planned]) -> None:
        """Note what was collected; every worker collects the same."""
        self._write({"kind": "planned", "checks": to_json(checks)})

    def started(self, nodeid: str) -> None:
        """Note that a check begins; without a result later, the worker died in it."""
        self._write({"kind": "started", "nodeid": nodeid})

    def result(self, nodeid: str, result: Result, *, world_sizes: set[int], story: ScenarioStory | None) -> None:
        """Note the verdict of a check."""
        self._write(
            {
                "kind": "result",
                "nodeid": nodeid,
                "result": to_json(result),
                "world_sizes": sorted(world_sizes),
                "story": to_json(story),
            }
        )

    def story(self, nodeid: str, story: ScenarioStory) -> None:
        """Note the story of a failure mode that no claim is about."""
        self._write({"kind": "story", "nodeid": nodeid, "story": to_json(story)})

    def close(self) -> None:
        """Close the file, if one was opened."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(plain(line), ensure_ascii=True, allow_nan=False).encode() + b"\n"
        if self._path is None:
            self.kept.append(data)
            return
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        while data:
            data = data[os.write(self._file, data) :]


def read(folder: Path) -> Iterator[bytes]:
    """The lines of every journal of the folder."""
    for path in sorted(folder.glob("*.jsonl")):
        yield from path.read_bytes().splitlines()


def gather(lines: Iterable[bytes]) -> Gathered:
    """Put the lines of all journals together; a torn last line is left out."""
    gathered = Gathered()
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the worker was killed while it wrote
        _take(entry, gathered)
    return gathered


def plain(value: Any) -> Any:
    """Make a value of a check fit for JSON: NaN and infinities, and whatever JSON does not know, become text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else str(value)


def _take(entry: Mapping[str, Any], gathered: Gathered) -> None:
    match entry["kind"]:
        case "planned":
            for check in entry["checks"]:
                planned = Planned(
                    **{
                        **check,
                        "tier": Tier(check["tier"]),
                        "despite": tuple(check["despite"]),
                        "asks": tuple(check["asks"]),
                    }
                )
                gathered.planned.setdefault(planned.nodeid, planned)
        case "started":
            gathered.started.add(entry["nodeid"])
        case "story":
            gathered.stories[entry["nodeid"]] = _story(entry["story"])
        case "result":
            gathered.results[entry["nodeid"]] = _result(entry["result"] | {"world_sizes": entry["world_sizes"]})
            gathered.world_sizes.update(entry["world_sizes"])
            if entry["story"] is not None:
                gathered.stories[entry["nodeid"]] = _story(entry["story"])


def _result(fields: dict[str, Any]) -> Result:
    return Result(
        **{
            **fields,
            "tier": Tier(fields["tier"]),
            "verdict": Verdict(fields["verdict"]),
            "world_sizes": tuple(fields["world_sizes"]),
            "hint": Text(**fields["hint"]),
            "ranks": tuple(RankReport(**rank) for rank in fields["ranks"]),
        }
    )


def _story(fields: dict[str, Any]) -> ScenarioStory:
    texts = {name: Text(**fields[name]) for name in ("title", "symptom", "diagnosis", "cure")}
    values = {**fields, **texts, "verdict": Verdict(fields["verdict"]), "evidence": tuple(fields["evidence"])}
    if fields["waiting"] is not None:
        edges = tuple((rank, peer) for rank, peer in fields["waiting"]["edges"])
        values["waiting"] = Waiting(
            num_ranks=fields["waiting"]["num_ranks"], edges=edges, blamed=tuple(fields["waiting"]["blamed"])
        )
    return ScenarioStory(**values)
