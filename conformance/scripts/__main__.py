"""``python -m conformance.scripts``: for each mutant, the script of the first claim that it breaks, run.

    python -m conformance.scripts                      # one line for each script that does not show the fault
    python -m conformance.scripts 'zero.*' --all       # all claims of that pattern that a mutant breaks
    python -m conformance.scripts --keep=FOLDER        # scripts and what they printed stay there

No check is run: the case is the one that is known to break the claim, with its number of ranks.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import fnmatch
import functools
import io
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.checks import Description
from conformance.collect import CHECK
from conformance.describing import filled, found_in
from conformance.journal import Planned
from conformance.mutants import find
from conformance.reproduce import has_line, plainness, script
from conformance.scripts.running import JOBS, outputs
from conformance.verdict import Result, Verdict
from impls.loading import load

SHOWN, RIGHT, CRASHED, NONE = "shown", "not shown", "crashed", "no script"
MOST_TRIED = 4  # scripts of other cases, where the one that breaks the claim has none


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case that breaks a claim for a mutant; `world_size` is its parameter, None where it has none."""

    planned: Planned
    world_size: int | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what does not show its fault, and how many do; exit status 1 when a script does not."""
    parser = argparse.ArgumentParser(prog="python -m conformance.scripts", description=__doc__.partition("\n")[0])
    parser.add_argument("claims", nargs="*", default=["*"], metavar="GLOB")
    parser.add_argument("--all", action="store_true", help="every claim that a mutant breaks, not only the first")
    parser.add_argument("--jobs", type=int, default=JOBS, help="scripts that run at the same time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the scripts and what they printed stay")
    parser.add_argument("--reference", action="store_true", help="every script of the reference, which shows nothing")
    chosen = parser.parse_args(arguments)
    if chosen.reference:
        return _reference(chosen.claims, chosen.jobs, chosen.keep)
    first = {(mutant.name, mutant.breaks[0]) for mutant in find()}
    cases = [
        case
        for case in broken_cases()
        if any(fnmatch.fnmatchcase(case.planned.claim, glob) for glob in chosen.claims)
        and (chosen.all or (case.planned.impl, case.planned.claim) in first)
    ]
    with contextlib.ExitStack() as stack:
        home = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        home.mkdir(parents=True, exist_ok=True)
        return _tell(cases, shown(cases, home, chosen.jobs))


def _reference(globs: Sequence[str], jobs: int, keep: Path | None) -> int:
    """Run the scripts that the reference would have if everything of it were broken: exit status 1 if one says so."""
    texts: dict[str, Case] = {}
    for case in (case for cases in all_cases().values() for case in cases):
        if any(fnmatch.fnmatchcase(case.planned.claim, glob) for glob in globs):
            plain = dataclasses.replace(case, world_size=None)  # one number of ranks shows it
            if (text := script(_result(plain), case.planned.asks, _describe("reference"))) is not None:
                texts.setdefault(text, case)
    with contextlib.ExitStack() as stack:
        home = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        home.mkdir(parents=True, exist_ok=True)
        paths = [home / f"{number}.py" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        became = [_became(printed) for printed in outputs(paths, jobs).values()]
    for path, case, word in zip(paths, texts.values(), became, strict=True):
        if word != RIGHT:
            print(f"{word:10} {path.name} {case.planned.claim} {case.planned.case}")
    print(f"{became.count(RIGHT)} of {len(became)} scripts of the reference show nothing")
    return int(set(became) != {RIGHT})


def all_cases() -> dict[str, list[Case]]:
    """By claim all its cases, whoever meets them."""
    found: dict[str, list[Case]] = {}
    for case in _collected("--impl=reference"):
        found.setdefault(case.planned.claim, []).append(case)
    return found


def broken_cases() -> list[Case]:
    """The case in which each mutant breaks each claim that it names."""
    return [case for case in _collected("--mutants") if case.planned.impl.startswith("mutants/")]


def _collected(option: str) -> list[Case]:
    found: list[Case] = []

    class Grab:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_finish(self, session: pytest.Session) -> None:
            for item in session.items:
                if CHECK in item.stash:
                    size = getattr(item, "callspec").params.get("world_size")  # noqa: B009  (not every item has one)
                    found.append(Case(planned=item.stash[CHECK].planned, world_size=size))

    with contextlib.redirect_stdout(io.StringIO()) as said:
        options = [option, "--collect-only", "-q", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        status = pytest.main(options, plugins=[Grab()])
    if status != pytest.ExitCode.OK:
        raise SystemExit(said.getvalue())
    return found


def shown(cases: Sequence[Case], home: Path, jobs: int) -> list[str]:
    """For each case what became of its script, or, where it has none, of the plainest ones that its claim has."""
    others = all_cases()
    texts = {case: _texts(case, others[case.planned.claim]) for case in cases}
    paths: dict[Case, list[Path]] = {}
    for case, found in texts.items():
        stem = f"{case.planned.impl.removeprefix('mutants/')}-{case.planned.claim}"
        paths[case] = [home / f"{stem}{f'-{number}' * (number > 0)}.py" for number in range(len(found))]
        for path, text in zip(paths[case], found, strict=True):
            path.write_text(text, encoding="utf-8")
    printed = outputs([path for found in paths.values() for path in found], jobs)
    return [_best(case, [_became(printed[path]) for path in paths[case]]) for case in cases]


def _texts(case: Case, others: Sequence[Case]) -> list[str]:
    """The script of the case; where it has none, those that other cases of the claim would have."""
    if not has_line(case.planned.claim):
        return []
    description = _describe(case.planned.impl)
    if (own := script(_result(case), case.planned.asks, description)) is not None:
        return [own]
    plain = [dataclasses.replace(other, world_size=None) for other in others]  # one number of ranks shows it
    results = [(_result(other), other.planned.asks) for other in plain]
    results.sort(key=lambda pair: plainness(pair[0]))
    found = [script(result, asks, description) for result, asks in results]
    return list(dict.fromkeys(text for text in found if text is not None))[:MOST_TRIED]


def _best(case: Case, became: Sequence[str]) -> str:
    """Another case's script that shows nothing is none: that case may well hold."""
    if SHOWN in became:
        return SHOWN
    is_own = bool(became) and script(_result(case), case.planned.asks, _describe(case.planned.impl)) is not None
    return became[0] if is_own else NONE


def _result(case: Case) -> Result:
    planned = case.planned
    return Result(
        claim=planned.claim,
        case=planned.case,
        tier=planned.tier,
        impl=planned.impl,
        verdict=Verdict.VIOLATED,
        data={} if case.world_size is None else {"world_size": case.world_size},
    )


@functools.cache
def _describe(name: str) -> Description:
    impl = load(name)
    return filled(Description(name=name, spec=name, path=str(impl.path)), found_in(impl))


def _became(printed: str) -> str:
    *_, status = printed.splitlines() or [""]
    if "WRONG, " in printed:
        return SHOWN if status == "exit status 1" else CRASHED
    return RIGHT if status == "exit status 0" else CRASHED


def _tell(cases: Sequence[Case], became: Sequence[str]) -> int:
    for case, word in zip(cases, became, strict=True):
        if word != SHOWN:
            print(
                f"{word:10} {case.planned.claim:40} {case.planned.impl.removeprefix('mutants/'):48} {case.planned.case}"
            )
    counts = collections.Counter(became)
    print(", ".join(f"{counts[word]} {word}" for word in (SHOWN, RIGHT, CRASHED, NONE)))
    return int(counts[RIGHT] + counts[CRASHED] > 0)


if __name__ == "__main__":
    sys.exit(main())
