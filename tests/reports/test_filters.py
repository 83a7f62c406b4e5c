"""The filters of the matrix in a real Chromium, and the address that keeps them."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from reports import build, html
from tests.reports import sample
from tests.reports.conftest import needs_chromium

pytestmark = needs_chromium


def test_searching_finds_by_id_and_by_either_language(page: Page) -> None:
    rows = page.locator(".matrix tr.row:visible")
    page.keyboard.press("/")
    page.keyboard.type("ring.bytes")
    expect(rows).to_have_count(1)
    expect(page.locator("#shown")).to_have_text(f"1 of {len(sample.CLAIMS)} rows shown")
    page.fill("#search", "پارامترهای آغازين")  # with an Arabic yeh
    expect(rows).to_have_count(1)
    page.fill("#search", "nothing like this")
    expect(rows).to_have_count(0)
    expect(page.locator("#nothing")).to_be_visible()
    page.click("#clear")
    expect(page.locator("#shown")).to_have_text(f"{len(sample.CLAIMS)} of {len(sample.CLAIMS)} rows shown")


def test_filters_narrow_the_rows_and_work_together(page: Page) -> None:
    rows = page.locator(".matrix tr.row:visible")
    page.select_option("#section", "loop")
    expect(rows).to_have_count(4)
    page.click('.pick[data-verdict="hangs"]')
    expect(rows).to_have_count(1)
    page.click('.pick[data-verdict="crashes"]')
    expect(rows).to_have_count(2)
    page.select_option("#tier", "contract")
    expect(rows).to_have_count(0)
    page.click("#clear")
    page.select_option("#truth", "corrected")
    expect(rows).to_have_count(1)


def test_the_address_keeps_the_filters(browser: Browser, page: Page, address: str) -> None:
    page.fill("#search", "rank")
    page.select_option("#section", "loop")
    page.select_option("#impl", "mine")
    page.click('.pick[data-verdict="hangs"]')
    page.click('.pick[data-verdict="crashes"]')
    shown = page.locator("#shown").text_content()
    kept = page.evaluate("location.href")
    assert kept == f"{address}?q=rank&section=loop&impl=mine&verdict=hangs%2Ccrashes"
    again = browser.new_page(locale="en-US")
    again.goto(f"{kept}#claim-loop.construct-broadcast")
    expect(again.locator("#shown")).to_have_text(str(shown))
    expect(again.locator("#impl")).to_have_value("mine")
    expect(again.locator('.pick[data-verdict="hangs"]')).to_have_attribute("aria-pressed", "true")
    again.close()
    page.click("#clear")
    page.wait_for_function("location.search === ''")


def test_an_address_of_another_reports_filters_is_no_trap(browser: Browser, address: str) -> None:
    page = browser.new_page(locale="en-US")
    page.goto(f"{address}?section=nowhere&impl=nobody&verdict=none&tier=x&changed=1&lang=xx&theme=pink")
    expect(page.locator("#shown")).to_have_text(f"{len(sample.CLAIMS)} of {len(sample.CLAIMS)} rows shown")
    page.close()


def test_one_implementation_can_be_looked_at_alone(page: Page) -> None:
    rows = page.locator(".matrix tr.row:visible")
    page.select_option("#impl", "torch")
    page.click('.pick[data-verdict="hangs"]')
    expect(rows).to_have_count(0)
    page.select_option("#impl", "mine")
    expect(rows).to_have_count(1)
    faded = page.locator(".row:visible .cell[data-impl=torch] .chip.aside")
    assert faded.count() == page.locator(".row:visible .cell[data-impl=torch] .chip").count() > 0


def test_what_changed_since_the_baseline_can_be_looked_at_alone(browser: Browser, page: Page, tmp_path: Path) -> None:
    expect(page.locator("#changed")).to_have_count(0)
    report = build.build(sample.record())
    for result in report["results"]:
        result["before"] = "holds"
    path = tmp_path / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    page = browser.new_page(locale="en-US")
    page.goto(f"{path.as_uri()}?impl=reference&section=collectives")
    rows = page.locator(".matrix tr.row:visible")
    expect(rows).to_have_count(6)
    page.click("#changed")
    expect(rows).to_have_count(1)  # the one without a check, which the made-up baseline has as holding
    page.close()


def test_what_is_not_run_is_named_and_found(page: Page) -> None:
    page.click(".not-run:not(.what-was-lost) a")
    expect(page.locator(".matrix tr.row:visible")).to_have_count(5)
    expect(page.locator('.pick[data-verdict="not-checked"]')).to_have_attribute("aria-pressed", "true")


def test_a_filter_shows_rows_of_folded_sections(page: Page) -> None:
    page.fill("#search", "memory.adam")
    expect(page.locator('[data-section="memory"] .row')).to_be_visible()


def test_the_count_beside_a_verdict_is_of_the_rows_that_it_leaves(page: Page) -> None:
    page.click(".what-was-lost a")
    page.click("#clear")
    for pick in page.locator(".pick[data-verdict]").all():
        pick.click()
        expect(page.locator(".matrix tr.row:not([hidden])")).to_have_count(int(pick.locator(".n").inner_text()))
        pick.click()


def test_the_address_keeps_the_language_that_is_seen(browser: Browser, address: str) -> None:
    page = browser.new_page(locale="en-US")
    page.goto(f"{address}?lang=en&theme=light")
    page.click("#language")
    page.click("#theme")
    assert page.evaluate("location.search") == "?lang=fa&theme=dark"
    page.close()


def test_a_broken_address_stops_nothing(browser: Browser, address: str) -> None:
    page = browser.new_page(locale="en-US")
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{address}#claim-%E0%A4%A")
    page.fill("#search", "ZeroDivisionError")  # what the cards say is searched, too
    expect(page.locator(".matrix tr.row:visible")).not_to_have_count(len(sample.CLAIMS))
    assert complaints == []
    page.close()
