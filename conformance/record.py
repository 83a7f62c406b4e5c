"""The controller's work at the end: from the journals of all workers to one Record in which nothing is missing.

What was planned and has no result is LOST; a broken claim whose need is broken too is BLOCKED; a declared deviation
that was not seen makes the manifest stale; a claim of the ledger without any check is NOT_CHECKED.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.checks import Description
from conformance.grading import points
from conformance.grading.rubric import Rubric
from conformance.hints.contrasts import split_signature
from conformance.hints.signatures import own_signature, signature, stands_alone
from conformance.hints.stops import stop_signature
from conformance.journal import Gathered, Planned
from conformance.options import SUITE, Chosen
from conformance.reproduce import scripts
from conformance.ruling import STALE
from conformance.scripts.reasons import why_none
from conformance.verdict import Claim, ImplInfo, Record, Result, ScenarioStory, Text, Tier, Verdict
from impls.contract import ENTRIES

DIED = "the worker process that ran this check died, or was interrupted, before it could say"
NEVER = "the run ended before this check was begun"
NO_CHECK = "the suite has no check for this claim yet"

HINTS = {
    Verdict.CRASHES: Text(
        en="Read the exception, and the line of your own code that it names. Nothing is said yet about values.",
        fa="متن خطا و خطی از کد خودتان را که نام برده است بخوانید. دربارهٔ مقدارها هنوز چیزی گفته نشده است.",
    ),
    Verdict.HANGS: Text(
        en="See who waits for whom, and in which call: some rank never makes the call that the others wait for, or "
        "makes another one first. In this order: a condition or an early return around a collective that is true on "
        "some ranks only, ranks that go through parameters or buckets in different orders, two ranks that both send "
        "before either receives, an exception that one rank catches.",
        fa="ببینید چه کسی در کدام فراخوانی منتظر کیست: رتبه‌ای فراخوانی‌ای را که بقیه منتظر آن‌اند هرگز انجام نمی‌دهد یا "
        "پیش از آن فراخوانی دیگری دارد. به این ترتیب نگاه کنید: شرط یا بازگشت زودهنگامی دور عملیات جمعی که فقط روی "
        "برخی رتبه‌ها برقرار است، رتبه‌هایی که با ترتیب‌های متفاوت از پارامترها یا سطل‌ها می‌گذرند، دو رتبه که هر دو پیش از "
        "دریافت می‌فرستند، خطایی که یک رتبه آن را می‌گیرد.",
    ),
}
FIX_THE_IMPORT = Text(
    en="Make it importable first: nothing of it was examined.",
    fa="نخست کاری کنید که import شود: هیچ چیز آن بررسی نشده است.",
)

_RANK = {Tier.CORE: 0, Tier.CONTRACT: 1, Tier.EXOTIC: 2}
_STOPPED = frozenset({Verdict.CRASHES, Verdict.HANGS})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the controller knows of the run itself."""

    impls: Sequence[Chosen]
    descriptions: Mapping[str, Description]
    claims: Mapping[str, Claim]
    unchecked: Sequence[str]  # claims to be shown as not checked
    is_whole: bool  # every case of every chosen claim was collected
    about: Mapping[str, Any]  # Record.run
    rootpath: Path
    rubric: Rubric | None = None


def assemble(gathered: Gathered, run: Run) -> Record:
    """Make the record. ``collected`` results were set out for, and as many are in it."""
    results = [_delivered(planned, gathered) for planned in gathered.planned.values()]
    if run.is_whole:
        results = _with_stale_manifests(results, run.descriptions)
    unloaded = {name for name, description in run.descriptions.items() if description.verdict is not None}
    results = _with_blocked(results, list(gathered.planned.values()), run.claims, unloaded)
    named = _signatures(results)
    results = [_with_hint(result, run.claims, unloaded, named) for result in results]
    results, texts = _with_scripts(results, [planned.asks for planned in gathered.planned.values()], run.descriptions)
    results += [_not_checked(claim, chosen.name) for claim in run.unchecked for chosen in run.impls]
    names = [chosen.name for chosen in run.impls]
    return Record(
        suite=_suite(run.rootpath),
        run=run.about,
        environment=_environment(gathered.world_sizes),
        impls=_impls(run, results),
        claims=tuple(run.claims.values()),
        results=tuple(results),
        scenarios=_stories(gathered, results),
        collected=len(gathered.planned) + len(run.unchecked) * len(run.impls),
        scripts=texts,
        rubric=None if run.rubric is None else points.info(results, names, run.rubric),
        score={} if run.rubric is None else points.scores(results, names, run.rubric),
    )


def is_passing(record: Record) -> bool:
    """Whether every verdict is one of those that let a run exit with status 0."""
    return all(result.verdict.is_passing for result in record.results)


def _delivered(planned: Planned, gathered: Gathered) -> Result:
    if (result := gathered.results.get(planned.nodeid)) is not None:
        return result
    return Result(
        claim=planned.claim,
        case=planned.case,
        tier=planned.tier,
        impl=planned.impl,
        verdict=Verdict.LOST,
        message=DIED if planned.nodeid in gathered.started else NEVER,
        rerun=planned.rerun,
    )


def _with_stale_manifests(results: list[Result], descriptions: Mapping[str, Description]) -> list[Result]:
    """A deviation that is declared and in no case seen turns the first case of its claim into a violation."""
    for name, description in descriptions.items():
        for claim, entry in description.deviates.items():
            places = [i for i, result in enumerate(results) if (result.impl, result.claim) == (name, claim)]
            if places and all(results[i].verdict is Verdict.HOLDS for i in places):
                message = STALE.format(reason=entry.get("reason", "no reason given"))
                results[places[0]] = dataclasses.replace(results[places[0]], verdict=Verdict.VIOLATED, message=message)
    return results


def _with_blocked(
    results: list[Result], planned: Sequence[Planned], claims: Mapping[str, Claim], unloaded: Container[str]
) -> list[Result]:
    """One root cause is one red row. A need blocks where it is broken in the same tier or a more basic one.

    Where an implementation could not be loaded, that is the cause of every row, and no row is in another's way.
    What is planned says, for each result, which needs block it only where they crash or hang, and whether it blocks
    others only then.
    """
    broken: dict[tuple[str, str], int] = {}
    stopped: dict[tuple[str, str], int] = {}
    for result, plan in zip(results, planned, strict=True):
        stops = result.verdict in _STOPPED
        for table, counts in ((broken, stops if plan.alone else result.verdict.is_broken), (stopped, stops)):
            if counts:
                key = (result.impl, result.claim)
                table[key] = min(table.get(key, len(_RANK)), _RANK[result.tier])

    def blocked(result: Result, spared: Sequence[str]) -> Result:
        if not result.verdict.is_broken or result.impl in unloaded:
            return result

        def is_in_the_way(need: str) -> bool:
            table = stopped if need in spared else broken
            return table.get((result.impl, need), len(_RANK)) <= _RANK[result.tier]

        need = _first_need(result.claim, claims, is_in_the_way)
        if need is None:
            return result
        message = f"blocked: {need}, which this needs, is broken. {result.message}"
        return dataclasses.replace(result, verdict=Verdict.BLOCKED, blocked_by=need, message=message)

    return [blocked(result, plan.despite) for result, plan in zip(results, planned, strict=True)]


def _first_need(claim: str, claims: Mapping[str, Claim], is_broken: Callable[[str], bool]) -> str | None:
    """The most basic claim, over ``needs`` of ``needs``, that is broken."""
    seen = {claim}
    frontier = [claim]
    found: str | None = None
    while frontier:
        needs = [need for name in frontier if name in claims for need in claims[name].needs if need not in seen]
        seen.update(needs)
        found = next((need for need in needs if is_broken(need)), found)
        frontier = needs
    return found


def _with_scripts(
    results: list[Result], asks: Sequence[Sequence[str]], descriptions: Mapping[str, Description]
) -> tuple[list[Result], dict[str, str]]:
    """Name the script of a claim in all its broken cases; the texts by file name."""
    names: dict[tuple[str, str], str] = {}
    texts: dict[str, str] = {}
    for (impl, claim), (case, text) in scripts(results, asks, descriptions).items():
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{claim}_{case}").strip("-")[:120]
        taken = [*texts, ""]
        names[impl, claim] = next(
            name for n in range(len(taken)) if (name := f"{stem}{f'-{n}' * (n > 0)}.py") not in taken
        )
        texts[names[impl, claim]] = text

    def named(result: Result, asked: Sequence[str]) -> Result:
        if not result.verdict.is_broken:
            return result
        name = names.get((result.impl, result.claim))
        return dataclasses.replace(result, reproduce=name, no_script=None if name else why_none(result, asked))

    return [named(*pair) for pair in zip(results, asks, strict=True)], texts


def _signatures(results: Iterable[Result]) -> dict[tuple[str, ...], Text]:
    """By implementation, claim and what of it is examined, the fault that its numbers name."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(_examined(result), []).append(result)
    found = {key: signature(group) for key, group in groups.items()}
    return {key: text for key, text in found.items() if text is not None}


def _examined(result: Result) -> tuple[str, ...]:
    """Two functions, or two stages, may have two faults under one claim."""
    parts = re.split(r"(?<!stage)-|[\[\]]", result.case)
    return result.impl, result.claim, *(part for part in parts if part in ENTRIES or part.startswith("stage-"))


def _with_hint(
    result: Result, claims: Mapping[str, Claim], unloaded: Container[str], named: Mapping[tuple[str, ...], Text]
) -> Result:
    """What is known of the fault, and then the usual causes: the claim's own, or what a crash or a hang has.

    The claim's own hint is about wrong values; one that stopped before it gave any needs another.
    """
    if not result.verdict.is_broken or result.claim not in claims:
        return result
    if result.impl in unloaded:
        return dataclasses.replace(result, hint=FIX_THE_IMPORT)
    hint = claims[result.claim].hint_for(result.case, result.verdict) or HINTS[result.verdict]
    if result.verdict is Verdict.VIOLATED:
        if (own := own_signature(result)) is not None and stands_alone(result):
            return dataclasses.replace(result, hint=own)
        signs = [own or named.get(_examined(result)) or split_signature(result)]
    else:
        signs = [stop_signature(result), split_signature(result)]
    return dataclasses.replace(result, hint=_joined(*signs, hint))


def _joined(*texts: Text | None) -> Text:
    """One text after the other."""
    told = [text for text in texts if text is not None]
    return Text(en=" ".join(text.en for text in told), fa=" ".join(text.fa for text in told))


def _not_checked(claim: str, impl: str) -> Result:
    return Result(claim=claim, case="", tier=Tier.CORE, impl=impl, verdict=Verdict.NOT_CHECKED, message=NO_CHECK)


def _impls(run: Run, results: Iterable[Result]) -> tuple[ImplInfo, ...]:
    infos = []
    for chosen in run.impls:
        known = run.descriptions.get(chosen.name)
        infos.append(
            ImplInfo(
                name=chosen.name,
                path=chosen.path,
                sha256=chosen.sha256,
                blocks=known.blocks if known else (),
                error="\n".join([*known.remarks, *filter(None, [known.reason])]) if known else "",
            )
        )
    if any(result.impl == SUITE for result in results):
        infos.append(ImplInfo(name=SUITE, path="", sha256="", blocks=()))
    return tuple(infos)


def _stories(gathered: Gathered, results: Iterable[Result]) -> tuple[ScenarioStory, ...]:
    """Of checks with their check's verdict, and those that no claim is about."""
    verdicts = dict(zip(gathered.planned, results, strict=False))
    return tuple(
        dataclasses.replace(story, verdict=verdicts[nodeid].verdict, rerun=story.rerun or verdicts[nodeid].rerun)
        if nodeid in verdicts
        else story
        for nodeid, story in gathered.stories.items()
        if nodeid in verdicts or not story.claim
    )


def _suite(rootpath: Path) -> dict[str, str]:
    try:
        found = subprocess.run(
            # in a container the suite is another user's, and git asks whether that is meant
            ["git", "-c", f"safe.directory={rootpath}", "-C", str(rootpath), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
        version = found.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        version = ""
    return {"name": "lockstep", "version": "0.1", "git": version}


def _environment(world_sizes: Iterable[int]) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "torch": importlib.metadata.version("torch"),
        "backend": "gloo",
        "os": platform.platform(terse=True),
        "cpus": os.cpu_count() or 1,
        "world_sizes": sorted(world_sizes),
    }
