"""What axe finds on the whole page, with every card open, in both languages and both themes; keyboard and paper."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from conformance.verdict import Verdict
from reports import build, html
from tests.reports import sample
from tests.reports.conftest import needs_chromium

pytestmark = needs_chromium

GANTT = [[0, "F", 0, 0, 0, 1], [0, "B", 0, 0, 3, 5], [1, "F", 1, 0, 1, 2], [1, "B", 1, 0, 2, 3]]
DRAWN: list[dict[str, Any]] = [
    {"gantt": [{"label": "simulated", "cells": GANTT}]},
    {"plot": "tree-bytes", "points": [{"x": 4, "observed": 2**25, "formula": 2**25}]},
    {"plot": "ring-time", "label": "N = 4", "points": [{"x": x, "observed": x, "formula": x} for x in (0.1, 1, 10)]},
    {"plot": "bubble-share", "line": "zbv", "points": [{"x": 4, "observed": 0.2, "formula": 0.2}]},
    {"plot": "spread", "points": [{"x": x, "observed": 1, "line": "spread-fault"} for x in range(3)]},
    {"bars": [{"group": "DDP", "x": "2", "label": "4 + 4 + 8", "observed": 16, "formula": 16}]},
]


def axe() -> str:
    """The script of axe-core, which the package brings with it."""
    found = importlib.util.find_spec("axe_playwright_python")
    assert found is not None, "requirements.txt has axe-playwright-python: pip install -r requirements.txt"
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The sample with every kind of picture and verdict, all cards and details open."""
    extra = tuple(sample.result("loop.same-init", "mine", case=str(n), data=data) for n, data in enumerate(DRAWN))
    report = build.build(sample.record(extra=extra))
    for result in report["results"][:5]:
        result["before"] = Verdict.VIOLATED.value
    path = tmp_path_factory.mktemp("whole") / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900}, locale="en-US", reduced_motion="reduce")
    page.goto(path.as_uri())
    page.eval_on_selector_all(".open", "all => all.forEach(button => button.click())")
    expect(page.locator(".card-row .card")).to_have_count(len(sample.CLAIMS))
    page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    page.evaluate(axe())
    yield page
    page.close()


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("fa", "dark")])  # colours know no language
def test_axe_finds_no_violation(page: Page, language: str, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    if page.get_attribute("html", "lang") != language:
        page.click("#language")
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert told(found) == []
    assert len(found["passes"]) > 20


def test_axe_would_find_one(page: Page) -> None:
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<div id=control><button></button></div>')")
    found = page.evaluate("axe.run('#control')")
    page.evaluate("document.getElementById('control').remove()")
    assert any(line.startswith("button-name") for line in told(found))


def told(found: Any) -> list[str]:
    return [
        f"{rule['id']}: {node['html'][:200]}: {node['failureSummary'][:300]}"
        for rule in found["violations"]
        for node in rule["nodes"][:3]
    ]


def test_everything_can_be_reached_with_the_keyboard_and_shows_where_it_is(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, locale="en-US", reduced_motion="reduce")
    page.goto(address)
    reachable = "a[href], button, input, select, summary, [tabindex='0']"
    wanted = page.eval_on_selector_all(
        reachable, "all => all.filter(e => e.checkVisibility({visibilityProperty: true})).length"
    )
    page.evaluate(
        """() => {
            window.reached = new Set();
            window.unmarked = [];
            document.addEventListener('focusin', ({target}) => {
                reached.add(target);
                if (getComputedStyle(target).outlineStyle === 'none') unmarked.push(target.outerHTML.slice(0, 120));
            });
        }"""
    )
    for _ in range(wanted + 2):
        page.keyboard.press("Tab")
    assert page.evaluate("unmarked") == []
    assert page.evaluate("reached.size") == wanted
    page.close()


def test_on_paper_there_is_what_was_opened_and_nothing_to_press(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, locale="en-US", color_scheme="dark")
    page.goto(f"{address}#claim-loop.mean")
    expect(page.locator(".card:visible")).to_have_count(1)
    page.emulate_media(media="print")
    for gone in (".filters", ".switches", ".links", ".copy", ".skip"):
        assert page.locator(f"{gone}:visible").count() == 0, gone
    expect(page.locator(".card:visible")).to_contain_text("ZeroDivisionError")
    expect(page.locator(".provenance .command")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.top')).position") == "static"
    page.close()
