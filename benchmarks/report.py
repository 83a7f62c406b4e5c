"""The page of a report: how long it takes to build and to open, and how large it is, for 1,000 and 20,000 results.

The claims are those of the ledger; what implementations did is made up: one case in twenty is broken, with the words of
four ranks, as in a hand-in that was begun well.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.measure import Ratio, benchmark, seconds
from conformance.ledger import Ledger
from conformance.verdict import Claim, ImplInfo, RankReport, Record, Result, Tier, Verdict
from reports import build, html

NAMES = ("chromium", "chromium-browser", "google-chrome")
MB = 1e6
BROKEN_EVERY = 20
IMPLS = {1_000: 2, 20_000: 20}
LIMITS_MB = {1_000: 1, 20_000: 10}
OPENED = "document.getElementById('shown').textContent !== ''"
TRACEBACK = "Traceback (most recent call last):\n" + '  File "mine/ddp.py", line 38, in step\n    raise\n' * 4


@benchmark("report")
def building_and_opening_the_page() -> Iterator[Ratio]:
    """Seconds to build and to open the page, and its size."""
    for count, limit in LIMITS_MB.items():
        report = build.build(record(count))
        html.render(report)  # templates are compiled once
        against = f"nothing; {count:,} results, {IMPLS[count]} implementations"
        small = count == min(LIMITS_MB)
        took = seconds(lambda report=report: html.render(report), repeat=3)
        yield Ratio(name=f"report.build-{count}", value=took, unit="s", against=against, target="<= 1" if small else "")
        page = html.render(report)
        size = len(page.encode()) / MB
        yield Ratio(name=f"report.size-{count}", value=size, unit="MB", against=against, target=f"<= {limit}")
        if (browser := next(filter(None, map(shutil.which, NAMES)), None)) is not None:
            opened, filtered = _in_a_browser(browser, page)
            target = "<= 0.5" if small else ""
            yield Ratio(name=f"report.open-{count}", value=opened, unit="s", against=against, target=target)
            yield Ratio(name=f"report.filter-{count}", value=filtered, unit="s", against=against, target=target)


def _in_a_browser(browser: str, text: str) -> tuple[float, float]:
    """Seconds until the page can be used, the second time that it is opened; and those of one filter."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        path.write_text(text, encoding="utf-8")
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        opened = [_opened(page, path) for _ in range(3)]
        start = time.perf_counter()
        page.click('.pick[data-verdict="violated"]')
        page.evaluate("new Promise(done => requestAnimationFrame(done))")
        filtered = time.perf_counter() - start
        chromium.close()
    return sorted(opened[1:])[0], filtered


def _opened(page: Page, path: Path) -> float:
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_function(OPENED)
    return time.perf_counter() - start


def record(num_results: int) -> Record:
    """A run over the whole ledger with so many results."""
    claims = tuple(Ledger.load().claims.values())
    impls = tuple(
        ImplInfo(name=f"hand-in-{n}", path=f"hand-ins/{n}.py", sha256=hashlib.sha256(bytes([n])).hexdigest(), blocks=())
        for n in range(IMPLS.get(num_results, 1))
    )
    results = tuple(_result(number, claims, impls) for number in range(num_results))
    return Record(
        suite={"name": "lockstep", "version": "0.1", "git": ""},
        run={
            "id": "bench",
            "started": "2026-01-01T00:00:00+00:00",
            "duration_s": 60.0,
            "exit_status": 1,
            "command": "pytest -n 4 --impl=hand-ins/0.py",
            "seed": 0,
        },
        environment={"python": "3.11", "torch": "2", "backend": "gloo", "os": "Linux", "cpus": 2, "world_sizes": [4]},
        impls=impls,
        claims=claims,
        results=results,
        collected=num_results,
    )


def _result(number: int, claims: tuple[Claim, ...], impls: tuple[ImplInfo, ...]) -> Result:
    impl = impls[number % len(impls)]
    claim = claims[number // len(impls) % len(claims)]
    case = f"test_it_is_as_the_sheet_says[{number // len(impls) // len(claims)}]"
    is_broken = number % BROKEN_EVERY == BROKEN_EVERY - 1
    return Result(
        claim=claim.id,
        case=case,
        tier=list(Tier)[number % 3],
        impl=impl.name,
        verdict=Verdict.VIOLATED if is_broken else Verdict.HOLDS,
        duration_s=0.123,
        message="rank 1 sent 1,024 bytes too many: the whole tensor travels in each step" if is_broken else "",
        expected="25,165,824",
        observed="25,166,848" if is_broken else "25,165,824",
        unit="bytes",
        witness="trace",
        examples=15,
        hint=claim.hint,
        ranks=tuple(RankReport(rank=rank, ending="raised", detail=TRACEBACK) for rank in range(4 * is_broken)),
        rerun=f"pytest --impl={impl.path} 'conformance/{claim.section}/test_it.py::{case}'",
    )
