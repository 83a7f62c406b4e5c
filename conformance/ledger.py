"""The claims of the cheatsheet: reads ``claims.toml`` of every section, checks them against one another, finds them.

The files are data that people edit by hand, so that every error names the file and the claim, and one run reports all
of them. This module knows nothing of checks, verdicts or pytest.
"""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.verdict import CaseHint, Claim, Text, Truth, Verdict

HOME = Path(__file__).resolve().parent
KILLED = HOME.parent / "impls" / "mutants" / "killed.json"

# The order of the cheatsheet, which is the order of every listing. A folder that is not named here comes after these.
SECTIONS = (
    "strategies",
    "choose",
    "zero",
    "memory",
    "pipeline",
    "collectives",
    "loop",
    "lessons",
    "trouble",
    "faq",
)

_ID = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)+")
_LANGUAGES = ("en", "fa")
_TEXTS = ("text", "statement", "hint")
_NEEDED = frozenset({"id", "truth", "source", *_TEXTS})
_FIELDS = _NEEDED | {"line", "formula", "needs", "same_as", "hints"}


class LedgerError(ValueError):
    """The claims as written do not fit together; the message has one line for each thing wrong."""


class UnknownClaim(ValueError):
    """A pattern chose no claim."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ledger:
    """All claims, in the order of the cheatsheet's sections and of the files."""

    claims: Mapping[str, Claim]

    @classmethod
    def load(cls, home: Path = HOME, killed: Path | None = None) -> Ledger:
        """Read ``home/*/claims.toml``, and from ``killed`` (where there is one) which mutants break which claim.

        Raises LedgerError with every problem found, each with its file and claim.
        """
        claims: dict[str, Claim] = {}
        files: dict[str, str] = {}
        problems: list[str] = []
        for path in sorted(home.glob("*/claims.toml"), key=_section_order):
            name = f"{path.parent.name}/{path.name}"
            for entry in _entries(path, name, problems):
                found = list(_problems_of(entry))
                who = f"{name}: {entry.get('id', 'a claim without an id')}"
                problems += [f"{who}: {problem}" for problem in found]
                if found:
                    continue
                claim = _claim(entry, section=path.parent.name)
                if claim.id in claims:
                    problems.append(f"{who}: the id is used twice, first in {files[claim.id]}")
                    continue
                claims[claim.id] = claim
                files[claim.id] = name
        # A claim refused above would show a second time as an unknown name, so that names are looked up only when
        # every claim could be read.
        if not problems:
            links = [*_broken_links(claims), *_cycles(claims)]
            problems += [f"{files[claim]}: {claim}: {problem}" for claim, problem in links]
        killers = _killers(killed or (KILLED if home == HOME else home / KILLED.name), claims, problems)
        if problems:
            raise LedgerError("the ledger of claims does not hold together:\n  " + "\n  ".join(problems))
        return cls({name: dataclasses.replace(c, killed_by=killers.get(name, ())) for name, c in claims.items()})

    def match(self, globs: Iterable[str]) -> list[Claim]:
        """Return the claims whose id fits one of the shell patterns, in ledger order; no pattern chooses all.

        The name of a section stands for all its claims, also those whose ids begin otherwise.

        Raises UnknownClaim for a pattern that fits none: a misspelt choice must not pass by checking nothing.
        """
        patterns = list(globs)
        if not patterns:
            return list(self.claims.values())
        chosen: set[str] = set()
        for pattern in patterns:
            fitting = [name for name, claim in self.claims.items() if claim.section == pattern]
            fitting = fitting or fnmatch.filter(self.claims, pattern)
            if not fitting:
                raise UnknownClaim(self._unknown(pattern))
            chosen.update(fitting)
        return [claim for name, claim in self.claims.items() if name in chosen]

    def counted_as(self, name: str) -> Claim:
        """Return the claim under which ``name`` is checked: itself, or the one that it is the same as."""
        if name not in self.claims:
            raise UnknownClaim(self._unknown(name))
        claim = self.claims[name]
        return claim if claim.same_as is None else self.claims[claim.same_as]

    def listing(self, language: str = "en") -> str:
        """Return the text of ``--list-claims``: every claim with its truth and what it says, section by section."""
        width = max(map(len, self.claims), default=0)
        lines: list[str] = []
        section = None
        for claim in self.claims.values():
            if claim.section != section:
                section = claim.section
                lines += [*[""][: len(lines)], f"{section}  (all of it: --claim={section})"]
            says = f"the same as {claim.same_as}" if claim.same_as else getattr(claim.statement, language)
            lines.append(f"  {claim.id:<{width}}  {claim.truth.value:<11}  {says}")
        return "\n".join([*lines, "", f"{len(self.claims)} claims"])

    def _unknown(self, asked: str) -> str:
        """Say that nothing has the name or fits the pattern, what comes nearest, and how to see all."""
        sections = {claim.section for claim in self.claims.values()}
        stem = asked.rstrip(".*")
        if any(name.startswith(f"{stem}.") for name in self.claims):
            near = [f"{stem}.*"]
        elif stem in sections:
            near = [stem]
        else:
            groups = {name[: dot.start()] + ".*" for name in self.claims for dot in re.finditer(r"\.", name)}
            near = difflib.get_close_matches(asked, [*self.claims, *sorted(groups | sections)], n=1, cutoff=0.5)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        return f"no claim fits {asked!r}.{meant} All {len(self.claims)} are listed by: pytest --list-claims"


def _section_order(path: Path) -> tuple[int, str]:
    section = path.parent.name
    return (SECTIONS.index(section) if section in SECTIONS else len(SECTIONS), section)


def _entries(path: Path, name: str, problems: list[str]) -> list[dict[str, Any]]:
    """Return the tables of one file; what is not a table of a claim goes to ``problems``."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(f"{name}: not TOML: {error}")
        return []
    problems += [f"{name}: {key}: only [[claim]] tables belong here" for key in content if key != "claim"]
    entries = content.get("claim", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        problems.append(f"{name}: a claim is a table that starts with [[claim]], with two brackets")
        return []
    return entries


def _problems_of(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with one claim looked at by itself."""
    for field in sorted(entry.keys() - _FIELDS):
        yield f"unknown field {field!r}{_perhaps(field, _FIELDS)}"
    for field in sorted(_NEEDED - entry.keys()):
        yield f"{field} is missing"
    for field in sorted((entry.keys() & _FIELDS) - set(_TEXTS) - {"line", "needs", "hints"}):
        if not isinstance(entry[field], str) or not entry[field].strip():
            yield f"{field} must be a text that is not empty, not {entry[field]!r}"
    line = entry.get("line", 1)
    if type(line) is not int or line < 1:
        yield f"line must be a line number of the cheatsheet, not {line!r}"
    needs = entry.get("needs", [])
    if not isinstance(needs, list) or not all(isinstance(need, str) for need in needs):
        yield f"needs must be a list of claim ids, not {needs!r}"
    name = entry.get("id")
    if isinstance(name, str) and not _ID.fullmatch(name):
        yield "the id must be lower-case words joined by dots and hyphens, with a dot or hyphen at least"
    truth = entry.get("truth")
    if isinstance(truth, str) and truth not in set(Truth):
        yield f"truth must be one of {', '.join(Truth)}, not {truth!r}"
    yield from _problems_of_hints(entry.get("hints", []))
    texts_are_whole = True
    for field in _TEXTS:
        for problem in _problems_of_text(field, entry.get(field, {})) if field in entry else ():
            texts_are_whole = False
            yield problem
    if texts_are_whole and {"text", "statement"} <= entry.keys() and truth in {Truth.CONDITIONAL, Truth.CORRECTED}:
        for language in _LANGUAGES:
            if entry["text"][language].strip() == entry["statement"][language].strip():
                yield f"{truth}, but statement.{language} only repeats the text: name the condition or the correction"


def _problems_of_hints(hints: object) -> Iterator[str]:
    if not isinstance(hints, list) or not all(isinstance(hint, dict) for hint in hints):
        yield "a hint for some cases is a table that starts with [[claim.hints]], with two brackets"
        return
    for number, hint in enumerate(hints, 1):
        cases = hint.get("cases")
        if not isinstance(cases, list) or not cases or not all(isinstance(case, str) for case in cases):
            yield f"hints {number}: cases must be a list of patterns of names of checks, not {cases!r}"
        if hint.get("verdict", Verdict.VIOLATED) not in {verdict for verdict in Verdict if verdict.is_broken}:
            yield f"hints {number}: verdict must be violated, hangs or crashes, not {hint['verdict']!r}"
        texts = {key: value for key, value in hint.items() if key not in {"cases", "verdict"}}
        yield from _problems_of_text(f"hints {number}", texts)


def _problems_of_text(field: str, value: object) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{field} must be a table with {' and '.join(_LANGUAGES)}"
        return
    for language in sorted(value.keys() - set(_LANGUAGES)):
        yield f"{field}.{language}: the languages are {' and '.join(_LANGUAGES)}"
    for language in _LANGUAGES:
        said = value.get(language)
        if not isinstance(said, str) or not said.strip():
            yield f"{field}.{language} is missing or empty"


def _claim(entry: Mapping[str, Any], section: str) -> Claim:
    """Make the claim of an entry without problems."""
    text, statement, hint = (Text(**entry[field]) for field in _TEXTS)
    return Claim(
        id=entry["id"],
        section=section,
        text=text,
        truth=Truth(entry["truth"]),
        statement=statement,
        source=entry["source"],
        line=entry.get("line"),
        formula=entry.get("formula", ""),
        needs=tuple(entry.get("needs", ())),
        same_as=entry.get("same_as"),
        hint=hint,
        case_hints=tuple(map(_case_hint, entry.get("hints", ()))),
    )


def _case_hint(entry: Mapping[str, Any]) -> CaseHint:
    return CaseHint(
        cases=tuple(entry["cases"]),
        hint=Text(en=entry["en"], fa=entry["fa"]),
        verdict=Verdict(entry.get("verdict", Verdict.VIOLATED)),
    )


def _broken_links(claims: Mapping[str, Claim]) -> Iterator[tuple[str, str]]:
    """Yield (claim, problem) where ``needs`` or ``same_as`` name no claim, or one that is counted under another id."""
    for claim in claims.values():
        for field, other in _links(claim):
            if other not in claims:
                yield claim.id, f"{field} names {other!r}, which is no claim{_perhaps(other, claims)}"
            elif (counted := claims[other].same_as) is not None and counted != claim.id:
                yield claim.id, f"{field} names {other!r}, which is counted as {counted!r}: name that one"


def _cycles(claims: Mapping[str, Claim]) -> Iterator[tuple[str, str]]:
    """Yield (claim, problem) for each way over ``needs`` and ``same_as`` from a claim back to itself, once."""
    done: set[str] = set()

    def walk(name: str, trail: list[str]) -> Iterator[tuple[str, str]]:
        if name in trail:
            yield name, "needs itself: " + " -> ".join([*trail[trail.index(name) :], name])
        elif name in claims and name not in done:
            for _, other in _links(claims[name]):
                yield from walk(other, [*trail, name])
            done.add(name)

    for name in claims:
        yield from walk(name, [])


def _links(claim: Claim) -> Iterator[tuple[str, str]]:
    """Yield (field, id) of each other claim that this one names."""
    yield from (("needs", need) for need in claim.needs)
    if claim.same_as is not None:
        yield "same_as", claim.same_as


def _perhaps(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f", perhaps {near[0]!r}" if near else ""


def _killers(path: Path, claims: Mapping[str, Claim], problems: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the mutants that break each claim, as the last full mutant run found; nothing where there is no table."""
    if not path.is_file():
        return {}
    try:
        table = json.loads(path.read_text(encoding="utf-8"))["claims"]
        killers = {str(name): tuple(map(str, mutants)) for name, mutants in table.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problems.append(f"{path.name}: not a table of mutants ({error!r}); it is written by: tox run -e mutants")
        return {}
    if not problems:
        problems += [f"{path.name}: {name}: no such claim" for name in killers if name not in claims]
    return killers
