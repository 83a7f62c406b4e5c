"""What an implementation provides, found in a rank process: pytest itself never imports it.

Each implementation is described once per run. The description lies as a file in the folder of the run; whoever needs it
first takes a lock and writes it, so that four workers do not import a slow or hanging module four times.
``describe`` runs in the rank: nothing here imports pytest at run time.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.verdict import Verdict, to_json
from impls import around
from impls.absent import ways_out
from impls.contract import BLOCKS
from impls.notebooks import left_in

if TYPE_CHECKING:
    from conformance.checks import Description, Pool
    from conformance.options import Chosen
    from fixtures.world.context import RankContext
    from fixtures.world.outcome import Outcomes
    from impls.loading import Implementation

IMPORT_DEADLINE_S = 30.0
_IMPORT_ERRORS = ("ModuleNotFoundError", "ImportError")
_ONLY_IN_NOTEBOOKS = re.compile(
    r"name 'get_ipython' is not defined|'NoneType' object has no attribute '(system|run_\w+)'"
)
_NO_MODULE = re.compile(r"[Nn]o module named '([\w.]+)'")
_FURTHER: Mapping[str, Any] = {
    "averages": False,
    **{key: {} for key in ("reasons", "bindings", "around", "ambiguous", "proposals", "reach")},
}


def describe(ctx: RankContext) -> dict[str, Any]:
    """Rank program: the names that the loaded implementation provides, and its manifest."""
    assert ctx.impl is not None
    return found_in(ctx.impl)


def found_in(impl: Implementation) -> dict[str, Any]:
    """All of it that is written into a description, as JSON has it."""
    from impls import reach  # which needs torch: this runs in ranks

    return {
        "blocks": {block: dict(impl.provides(block)) for block in BLOCKS},
        "missing": {name: reason for block in BLOCKS for name, reason in impl.missing(block).items()},
        "remarks": impl.remarks(),
        "averages": impl.averages,
        "reasons": {name: impl.why(name) for block in BLOCKS for name in impl.provides(block)},
        "bindings": {name: impl.bindings(name) for block in BLOCKS for name in impl.provides(block)},
        "around": around.calls(impl),
        "ambiguous": impl.rivals(),
        "proposals": impl.proposals(),
        "reach": {"": reach.before(impl)}
        | {name: reach.reach(impl, name) for block in BLOCKS for name in impl.provides(block)},
        "deviates": _table(impl.deviates),
        "refuses": _table(impl.refuses),
    }


def _table(declared: object) -> dict[str, dict[str, str]]:
    """Whatever a manifest holds, as claim -> {reason, source}."""
    if not isinstance(declared, Mapping):
        return {}
    entries = {
        str(claim): entry if isinstance(entry, Mapping) else {"reason": entry} for claim, entry in declared.items()
    }
    return {claim: {str(key): str(text) for key, text in entry.items()} for claim, entry in entries.items()}


def find_out(chosen: Chosen, pool: Pool) -> Description:
    """Load the implementation in a world of one rank and describe it; a failure to load becomes a verdict."""
    from conformance.checks import Description, failure_text, verdict_of

    known = Description(name=chosen.name, spec=chosen.spec, path=chosen.path, sha256=chosen.sha256)
    if chosen.unusable:
        return dataclasses.replace(known, verdict=Verdict.CRASHES, reason=chosen.unusable)
    world = pool.world(1, impl=chosen.spec, bare=True, trace=False)
    outcomes = world.run(describe, deadline_s=IMPORT_DEADLINE_S)
    if (verdict := verdict_of(outcomes)) is not None:
        verdict = Verdict.CRASHES if verdict is Verdict.NOT_PROVIDED else verdict
        what = "hangs while it is imported" if verdict is Verdict.HANGS else "cannot be imported"
        reason = failure_text(outcomes) + proposal(outcomes, chosen.path)
        return dataclasses.replace(known, verdict=verdict, reason=f"{chosen.name} {what}: {reason}")
    return filled(known, outcomes.values[0], is_peer=chosen.is_peer)


def filled(known: Description, value: Mapping[str, Any], *, is_peer: bool = False) -> Description:
    """A description with what was found in the implementation."""
    spellings = {name: spelling for names in value["blocks"].values() for name, spelling in names.items()}
    return dataclasses.replace(
        known,
        spellings=spellings,
        missing=value["missing"],
        remarks=tuple(value["remarks"]),
        **{key: value.get(key, default) for key, default in _FURTHER.items()},
        blocks=tuple(block for block, names in value["blocks"].items() if names),
        deviates=value["deviates"] if is_peer else {},  # nobody excuses their own hand-in
        refuses=value["refuses"],
        reason="" if spellings else f"{known.name} ({known.path}) provides no name of the contract",
    )


def proposal(outcomes: Outcomes, path: str) -> str:
    """What can be done about an import that fails for want of a package or a notebook; nothing where that is not so."""
    raised = outcomes[0].raised
    if raised is not None and _ONLY_IN_NOTEBOOKS.search(raised.text):
        return "".join(f"\n{told}" for file in _sources(Path(path)) if (told := left_in(file)))
    found = _NO_MODULE.search(raised.text) if raised is not None and raised.type in _IMPORT_ERRORS else None
    name = "" if found is None else found[1].partition(".")[0]
    if not name or name in Path(path).parts:  # its own package is not to be replaced
        return ""
    return f"\n{ways_out(name)}"


def _sources(path: Path) -> list[Path]:
    return sorted(path.glob("*.py")) if path.is_dir() else [path]


class Descriptions:
    """The descriptions of this run, shared by all workers through its folder; kept in memory where there is none."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[str, Description] = {}

    def get(self, chosen: Chosen, pool: Pool) -> Description:
        """Give the description, from the folder where some worker has been first."""
        if (known := self.known(chosen)) is not None:
            return known
        if (path := self._path(chosen)) is None:
            self._known[chosen.name] = find_out(chosen, pool)
            return self._known[chosen.name]
        with _alone(path):
            if (known := self.known(chosen)) is not None:
                return known
            found = self._known[chosen.name] = find_out(chosen, pool)
            fresh = path.with_suffix(".new")
            fresh.write_text(json.dumps(to_json(found)), encoding="utf-8")
            fresh.replace(path)
        return found

    def known(self, chosen: Chosen) -> Description | None:
        """Give the description if there is one yet; starts nothing."""
        from conformance.checks import Description

        path = None if chosen.name in self._known else self._path(chosen)
        if path is not None and path.exists():
            fields = json.loads(path.read_text(encoding="utf-8"))
            verdict = None if fields["verdict"] is None else Verdict(fields["verdict"])
            fields |= {"verdict": verdict, "blocks": tuple(fields["blocks"])}
            fields["remarks"] = tuple(fields["remarks"])
            self._known[chosen.name] = Description(**fields)
        return self._known.get(chosen.name)

    def _path(self, chosen: Chosen) -> Path | None:
        name = f"impl-{hashlib.sha256(chosen.name.encode()).hexdigest()[:16]}.json"
        return None if self._folder is None else self._folder / name


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the worker dies
        yield
