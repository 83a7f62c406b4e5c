"""What a course gives points for: the names that were assigned, and a weight for each claim and tier.

A rubric is a TOML file that a teacher writes, so that everything wrong in it is told at once, each with its nearest
name, before any check runs. It knows claims and names of the contract, and nothing of verdicts or of pytest.

    name = "Assignment 2: data parallelism"
    assigned = ["DataParallel", "collectives"]     # names of the contract, whole blocks, or optional parts of a name
    credit = "cases"                               # points are shared among a claim's cases; "whole": all or none

    [[weight]]                                     # where several fit a claim, the last one decides
    claims = ["loop.*", "collectives.values.allreduce"]
    core = 2                                       # points; a tier that is not named is worth nothing
    contract = 1
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from conformance.ledger import Ledger, UnknownClaim
from conformance.verdict import Tier

_FIELDS = ("name", "assigned", "credit", "weight")
_CREDITS = ("cases", "whole")
_TIERS = tuple(tier.value for tier in Tier)


class RubricError(ValueError):
    """A rubric that cannot be used; the message has one line for each thing wrong."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """A rubric that fits the ledger. ``weights`` are points by (claim, tier), all above 0."""

    name: str
    sha256: str  # of the file
    assigned: frozenset[str]  # names of the contract
    weights: Mapping[tuple[str, Tier], float]
    demanded: frozenset[tuple[str, Tier]]  # weights that were given to a claim by its id, not by a pattern
    credit: Literal["cases", "whole"] = "cases"

    @property
    def claims(self) -> frozenset[str]:
        """The claims that have any weight."""
        return frozenset(claim for claim, _ in self.weights)

    def covers(self, claim: str, tier: Tier, asks: Sequence[str]) -> bool:
        """Whether a check of this claim earns points: it has a weight, and examines what was assigned only.

        ``asks`` are the names that the check needs, each perhaps several with ``|`` between them; an optional part
        of what was assigned, such as ``DataParallel.no_sync``, is assigned by its own name only.
        """
        needed = [{name.strip() for name in names.split("|")} for names in asks]
        return (claim, tier) in self.weights and all(self.assigned & names for names in needed)


def read(path: Path, ledger: Ledger) -> Rubric:
    """Read a rubric and check it against the ledger and the contract. Raises RubricError with all that is wrong."""
    from impls.contract import BLOCKS, ENTRIES, OPTIONAL

    try:
        raw = path.read_bytes()
        content = tomllib.loads(raw.decode("utf-8"))
    except OSError as error:
        raise RubricError(f"the rubric {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RubricError(f"the rubric {path} is not TOML: {error}") from None
    problems = list(_problems(content, [*ENTRIES, *BLOCKS, *OPTIONAL]))
    weights: dict[tuple[str, Tier], float] = {}
    demanded: set[tuple[str, Tier]] = set()
    for entry in content.get("weight", []) if not problems else []:
        for pattern in entry["claims"]:
            try:
                found = dict.fromkeys(ledger.counted_as(claim.id).id for claim in ledger.match([pattern]))
            except UnknownClaim as error:
                problems.append(str(error))
                continue
            pairs = {(claim, tier): float(entry.get(tier, 0)) for claim in found for tier in Tier}
            weights.update(pairs)
            if pattern in ledger.claims:
                demanded.update(pair for pair, weight in pairs.items() if weight)
    weights = {pair: weight for pair, weight in weights.items() if weight}
    if not problems and not weights:
        problems.append("nothing has a weight above 0: no points can be earned")
    if problems:
        raise RubricError(f"the rubric {path} cannot be used:\n  " + "\n  ".join(problems))
    names = {name for asked in content["assigned"] for name in BLOCKS.get(asked, (asked,))}
    return Rubric(
        name=content["name"].strip(),
        sha256=hashlib.sha256(raw).hexdigest(),
        assigned=frozenset(names),
        weights=weights,
        demanded=frozenset(demanded & weights.keys()),
        credit=content.get("credit", _CREDITS[0]),
    )


def _problems(content: Mapping[str, Any], known: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the file by itself."""
    for field in sorted(content.keys() - set(_FIELDS)):
        yield f"unknown field {field!r}{_perhaps(field, _FIELDS)}"
    if not _is_text(content.get("name")):
        yield 'name is missing: name = "Assignment 2"'
    assigned = content.get("assigned")
    if not isinstance(assigned, list) or not assigned or not all(isinstance(name, str) for name in assigned):
        yield 'assigned is missing: the names that hand-ins must provide, e.g. assigned = ["DataParallel"]'
    else:
        for name in assigned:
            if name not in known:
                yield f"assigned: {name!r} is no name of the contract and no block of it{_perhaps(name, known)}"
    if content.get("credit", _CREDITS[0]) not in _CREDITS:
        yield f"credit must be one of {', '.join(_CREDITS)}, not {content['credit']!r}"
    entries = content.get("weight", [])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        yield "weights are tables that start with [[weight]], with two brackets; one at least"
        return
    for number, entry in enumerate(entries, 1):
        yield from (f"weight {number}: {problem}" for problem in _problems_of_weight(entry))


def _problems_of_weight(entry: Mapping[str, Any]) -> Iterator[str]:
    fields = ("claims", *_TIERS)
    for field in sorted(entry.keys() - set(fields)):
        yield f"unknown field {field!r}{_perhaps(field, fields)}"
    claims = entry.get("claims")
    if not isinstance(claims, list) or not claims or not all(map(_is_text, claims)):
        yield 'claims must be a list of ids, patterns or sections, e.g. claims = ["loop.*"]'
    if not entry.keys() & set(_TIERS):
        yield f"it gives no points: name a tier at least, one of {', '.join(_TIERS)}"
    for tier in _TIERS:
        weight = entry.get(tier, 0)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < math.inf:
            yield f"{tier} must be a number of points from 0 up, not {weight!r}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _perhaps(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=3)
    return f", perhaps {' or '.join(map(repr, near))}" if near else ""
