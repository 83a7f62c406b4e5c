"""The pages about several reports in a real Chromium: they fit a telephone, speak both languages and load nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from reports import build, tables_html
from reports.merge import merge
from tests.reports import sample
from tests.reports.conftest import needs_chromium
from tests.reports.test_accessible import axe, told
from tests.reports.test_tables_html import compared, merged

pytestmark = needs_chromium


@pytest.fixture(scope="module", params=["comparison", "sections", "claims"])
def page(request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder: Path = tmp_path_factory.mktemp("tables")
    path = folder / "page.html"
    source = compared() if request.param == "comparison" else merged(folder, by_claim=request.param == "claims")
    path.write_text(source, encoding="utf-8")
    page = browser.new_page(viewport={"width": 360, "height": 800}, locale="en-US")
    asked: list[str] = []
    page.on("console", lambda message: asked.append(message.text))
    page.on("pageerror", lambda error: asked.append(str(error)))
    page.on("request", lambda request: asked.append(request.url) if not request.url.startswith("data:") else None)
    page.goto(path.as_uri())
    yield page
    assert asked == [path.as_uri()]
    page.close()


@pytest.mark.parametrize("language", ["en", "fa"])
def test_a_telephone_shows_the_whole_width_in_either_direction(page: Page, language: str) -> None:
    if page.evaluate("document.documentElement.lang") != language:
        page.locator("#language").click()
    expect(page.locator("html")).to_have_attribute("dir", "rtl" if language == "fa" else "ltr")
    expect(page.locator(f"h1 .{language}")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_axe_finds_no_violation_in_either_theme(page: Page) -> None:
    page.evaluate(axe())
    for scheme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{scheme}'")
        assert told(page.evaluate("axe.run({resultTypes: ['violations']})")) == []


@pytest.mark.parametrize("width", [768, 1280])
def test_a_long_name_leaves_the_scores_in_sight(browser: Browser, tmp_path: Path, width: int) -> None:
    report = build.build(sample.record())
    for info in report["impls"]:
        info["name"] = info["name"].replace("mine", "m" * 200)
    for result in report["results"]:
        result["impl"] = result["impl"].replace("mine", "m" * 200)
    report["summary"]["m" * 200] = report["summary"].pop("mine")
    (tmp_path / "report.json").write_text(build.dumps(report), encoding="utf-8")
    path = tmp_path / "class.html"
    path.write_text(tables_html.merged(merge([tmp_path])), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800}, locale="en-US")
    page.goto(path.as_uri())
    box = page.locator(".class tbody .mark").first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width
    page.close()
