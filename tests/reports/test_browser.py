"""The page in a real Chromium, opened as a file."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from conformance.verdict import RankReport, Text, Tier, Verdict
from reports import build, html
from tests.reports import sample
from tests.reports.conftest import needs_chromium

pytestmark = needs_chromium


def test_the_matrix_has_a_row_for_each_claim_and_a_column_for_each_implementation(page: Page) -> None:
    expect(page.locator(".matrix tr.row")).to_have_count(len(sample.CLAIMS))
    expect(page.locator(".matrix thead th.impl")).to_have_text(list(sample.IMPLS))
    expect(page.locator(".matrix tr.row .cell:not([colspan])")).to_have_count((len(sample.CLAIMS) - 2) * 3)


def test_sections_without_a_check_start_folded_and_open(page: Page) -> None:
    hidden = page.locator('[data-section="memory"] .row')
    expect(hidden).to_be_hidden()
    page.locator('[data-section="memory"] .fold').click()
    expect(hidden).to_be_visible()


def test_claims_without_a_check_lie_behind_one_row_that_counts_them(page: Page) -> None:
    section = page.locator('[data-section="collectives"]')
    later = section.locator(".row", has_text="collectives.ring.use")
    expect(later).to_be_hidden()
    button = section.locator(".more")
    expect(button).to_contain_text("1 claim without a check yet")
    button.click()
    expect(later).to_be_visible()
    button.click()
    expect(later).to_be_hidden()
    page.fill("#search", "ring.use")
    expect(later).to_be_visible()
    expect(button).to_be_hidden()


def test_an_address_of_a_claim_without_a_check_unfolds_it(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}#claim-collectives.ring.use")
    expect(page.locator('[id="claim-collectives.ring.use"]')).to_contain_text("no check yet")
    page.close()


def test_what_is_broken_leads_to_its_card(page: Page) -> None:
    page.locator(".broken-list a", has_text="loop.mean").click()
    expect(page.locator('[id="claim-loop.mean"]')).to_be_visible()
    expect(page.locator('[id="claim-loop.mean"]')).to_contain_text("ZeroDivisionError")


def test_a_cell_of_unlike_cases_counts_them_and_is_found_under_each_bad_verdict(
    browser: Browser, tmp_path: Path
) -> None:
    parts = (Verdict.CRASHES, Verdict.VIOLATED, Verdict.VIOLATED, Verdict.HOLDS)
    extra = [sample.result("faq.dualpipe-under-1000", "mine", v, case=str(n)) for n, v in enumerate(parts)]
    green = [sample.result("loop.same-init", "mine", Verdict.NOT_PROVIDED, case=str(n)) for n in range(2)]
    path = tmp_path / "report.html"
    path.write_text(html.render(build.build(sample.record(extra=(*extra, *green)))), encoding="utf-8")
    page = browser.new_page(locale="en-US")
    page.goto(path.as_uri())
    mixed = page.locator(".row", has_text="loop.same-init").locator(".chip.v-holds .parts")
    expect(mixed.locator(".part .en")).to_have_text(["1 holds", "2 not provided"])
    red = page.locator(".row", has_text="faq.dualpipe-under-1000")
    expect(red.locator(".parts .part .en")).to_have_text(["1 crashes", "2 violated", "1 holds", "1 not checked"])
    page.click('.pick[data-verdict="violated"]')
    expect(red).to_be_visible()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chart_of_ranks_is_an_image_with_a_name_whose_labels_can_be_read(
    browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    cells = [[0, "F", 0, 0, 0, 1], [0, "B", 0, 0, 3, 5], [1, "F", 1, 0, 1, 2], [1, "B", 1, 0, 2, 3]]
    data = {"gantt": [{"label": "simulated", "cells": cells}]}
    broken = sample.result("loop.same-init", "mine", Verdict.VIOLATED, case="drawn", data=data)
    path = tmp_path / "report.html"
    path.write_text(html.render(build.build(sample.record(extra=(broken,)))), encoding="utf-8")
    page = browser.new_page(color_scheme=scheme, locale="en-US")
    page.goto(f"{path.as_uri()}#claim-loop.same-init")
    chart = page.get_by_role("img", name="simulated")
    expect(chart).to_be_visible()
    expect(chart.locator("text", has_text="B0")).to_have_count(2)
    ink, fill = (
        chart.locator(f".g-B {part}").first.evaluate(f"node => getComputedStyle(node).{what}")
        for part, what in (("text", "fill"), ("rect", "fill"))
    )
    assert ink != fill
    assert "hatch-B" in chart.locator(".g-B .hatch").first.evaluate("node => getComputedStyle(node).fill")
    page.close()


def test_a_card_opens_and_closes_with_the_keyboard(page: Page) -> None:
    button = page.locator('[aria-controls="claim-loop.construct-broadcast"]')
    card = page.locator('[id="claim-loop.construct-broadcast"]')
    expect(card).to_be_hidden()
    button.focus()
    page.keyboard.press("Enter")
    expect(card).to_be_visible()
    expect(card).to_contain_text("rank 2 finished its program without entering it.")
    expect(card).to_contain_text("no-broadcast")
    expect(card).to_contain_text("--impl=mine")
    card.locator("summary").first.focus()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(button).to_be_focused()


def test_an_address_of_a_claim_opens_its_card_also_in_a_folded_section(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}#claim-memory.adam-states")
    expect(page.locator('[id="claim-memory.adam-states"]')).to_be_visible()
    page.close()


def test_a_link_to_a_claim_opens_its_card_also_when_a_filter_hides_it(page: Page) -> None:
    page.fill("#search", "loop.same-init")
    page.locator("#pictures .from a").click()
    expect(page.locator('[id="claim-collectives.ring.bytes"]')).to_be_visible()


def test_the_first_thing_to_mend_leads_to_its_card(page: Page) -> None:
    first = page.locator("#start li", has_text="mine")
    expect(first.locator(".behind .en")).to_have_text("1 claim waits behind it.")
    expect(first.locator(".command")).to_contain_text("--claim='collectives.ring.bytes'")
    first.locator("a").click()
    expect(page.locator('[id="claim-collectives.ring.bytes"]')).to_be_visible()


def test_the_page_says_first_what_was_run(page: Page) -> None:
    header = page.locator(".provenance")
    hashes = [info.sha256[:12] for info in sample.record().impls if info.sha256]
    for fact in ("2.13.0+cpu", "gloo", "3.11.9", "20240229", "41.7 s", *hashes):
        expect(header).to_contain_text(fact)
    expect(header.locator(".command code")).to_have_text(str(sample.record().run["command"]))


def test_the_language_turns_the_page_around(page: Page) -> None:
    root = page.locator("html")
    expect(root).to_have_attribute("dir", "ltr")
    page.click("#language")
    expect(root).to_have_attribute("dir", "rtl")
    expect(root).to_have_attribute("lang", "fa")
    expect(page.locator("#matrix-title")).to_contain_text("ادعاها")
    assert page.locator(".en:visible").count() == 0
    assert "گزارش" in page.title()
    page.click("#language")
    expect(root).to_have_attribute("dir", "ltr")
    assert page.locator(".fa:visible").count() == 0


def test_without_javascript_the_page_is_english_and_shows_all_but_cards(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False, locale="fa")
    page = context.new_page()
    page.goto(address)
    expect(page.locator("#matrix-title")).to_have_text("Claims and implementations")
    assert page.locator(".fa:visible").count() == 0
    expect(page.locator(".row", has_text="loop.mean").first).to_be_visible()
    expect(page.locator("#pictures svg[role=img]").first).to_be_visible()
    expect(page.locator("noscript p", has_text="need JavaScript")).to_be_in_viewport()
    for dead in ("#language", "#theme", ".filters"):
        expect(page.locator(dead)).to_be_hidden()
    context.close()


def test_the_theme_follows_the_system_and_then_the_reader(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    assert dark != light
    page.click("#theme")
    assert page.evaluate(ground) == light
    page.click("#theme")
    assert page.evaluate(ground) == dark


def test_a_command_is_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".story summary").first.click()
    button = page.locator(".story .copy").first
    button.click()
    expect(button).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == sample.SCENARIOS[1].rerun


def test_failure_modes_are_found_by_what_is_seen(browser: Browser, page: Page, address: str) -> None:
    groups = [text.partition(" ")[0] for text in page.locator("#scenarios .sign").all_inner_texts()]
    assert groups == ["Nothing", "The", "Other"]
    expect(page.locator(".story-body:visible")).to_have_count(0)
    page.locator(".story summary", has_text="Losses differ between ranks").click()
    expect(page.locator(".story-body:visible")).to_contain_text("Broadcast parameters")
    linked = browser.new_page(locale="en-US")
    linked.goto(f"{address}#scenario-uneven-batches")
    expect(linked.locator(".story-body:visible")).to_contain_text("Agree on the number of steps.")
    expect(linked.get_by_role("img", name="Who waits for whom")).to_be_visible()
    linked.close()


def test_nothing_is_wider_than_the_screen_in_either_language(page: Page) -> None:
    page.eval_on_selector_all(".open, .story > summary", "all => all.forEach(button => button.click())")
    expect(page.locator(".card-row .card")).to_have_count(len(sample.CLAIMS))
    page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    found = {}
    for language in ("en", "fa"):
        expect(page.locator("html")).to_have_attribute("lang", language)
        for width in (360, 768, 920, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            found[language, width] = page.evaluate("document.documentElement.scrollWidth")
        page.click("#language")
    assert {place: wide for place, wide in found.items() if wide > place[1]} == {}


@pytest.mark.parametrize("width", [360, 1280])
def test_a_cell_with_many_verdicts_stays_within_its_box(browser: Browser, tmp_path: Path, width: int) -> None:
    every = (Verdict.CRASHES, Verdict.HANGS, Verdict.VIOLATED, Verdict.NOT_PROVIDED, Verdict.INCONCLUSIVE)
    record = sample.record(
        extra=tuple(sample.result("loop.same-init", "mine", v, case=v.value, tier=Tier.CONTRACT) for v in every)
    )
    path = tmp_path / "report.html"
    report = build.build(record)
    report["impls"] = [info for info in report["impls"] if info["name"] == "mine"]
    report["results"] = [result for result in report["results"] if result["impl"] == "mine"]
    path.write_text(html.render(report), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    box = page.locator(".matrix-box").bounding_box()
    chips = [chip.bounding_box() for chip in page.locator(".chip:visible").all()]
    assert box is not None
    assert all(chip is not None and chip["x"] + chip["width"] <= box["x"] + box["width"] for chip in chips)
    page.close()


def test_an_opened_address_shows_the_claims_own_row_below_the_heading(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page.goto(f"{address}#claim-loop.mean")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    row = page.locator(".row", has_text="loop.mean").first.bounding_box()
    heading = page.locator(".matrix thead th").first.bounding_box()
    assert row is not None
    assert heading is not None
    assert row["y"] >= heading["y"] + heading["height"] - 1
    page.close()


def test_verdicts_are_told_apart_without_colour(page: Page) -> None:
    """Each verdict's sign is drawn by a path of its own."""
    drawings = page.eval_on_selector_all("symbol[id]", "all => all.map(s => s.innerHTML)")
    assert len(drawings) == len(set(drawings))


def test_text_stands_out_from_its_ground_in_both_themes(page: Page) -> None:
    """WCAG AA, 4.5 to 1, for every chip's colours as they are computed."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        pairs = page.eval_on_selector_all(
            ".chip, .pick, .badge, .note",
            """all => all.map(e => {
                let ground = e;
                while (getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)') ground = ground.parentElement;
                return [e.className, getComputedStyle(e).color, getComputedStyle(ground).backgroundColor];
            })""",
        )
        faint = {name for name, ink, ground in pairs if contrast(ink, ground) < 4.5}
        assert faint == set(), scheme


def test_a_hostile_report_runs_nothing_and_is_cut(browser: Browser, tmp_path: Path) -> None:
    """Names, messages, output and data with HTML, terminal escapes and marks of direction, 10 MB of it."""
    much = sample.HOSTILE + "</template></script>" * 500_000
    fields: dict[str, Any] = dict.fromkeys(("case", "message", "expected", "observed", "unit", "rerun"), much)
    fields["ranks"] = (RankReport(rank=0, ending=sample.HOSTILE, detail=much, output=much),)
    fields["hint"] = Text(en=much, fa=much)
    points = [{"x": 1, "observed": 1, "line": sample.HOSTILE}]
    fields["data"] = {"plot": "spread", "label": sample.HOSTILE, "points": points}
    record = sample.record(extra=(sample.result("loop.step", "mine", Verdict.CRASHES, **fields),))
    named = dataclasses.replace(record.impls[0], name=sample.HOSTILE, path=much, error=much)
    path = tmp_path / "report.html"
    path.write_text(html.render(build.build(dataclasses.replace(record, impls=(*record.impls, named)))), "utf-8")
    assert path.stat().st_size < 700_000
    page = browser.new_page()
    happened: list[str] = []
    page.on("dialog", lambda dialog: (happened.append("dialog"), dialog.dismiss()))
    page.on("console", lambda message: happened.append(message.text))
    page.on("pageerror", lambda error: happened.append(str(error)))
    page.on("request", lambda request: happened.append(request.url))
    page.goto(f"{path.as_uri()}#claim-loop.step")
    card = page.locator('[id="claim-loop.step"]')
    expect(card).to_contain_text("<script>alert(1)</script>")
    expect(card).to_contain_text("characters left out")
    assert page.locator("script, img, template").count() == 4  # our script, and what travels packed
    assert not set(str(page.locator("body").text_content())) & {"\x1b", "\x00", "\u202e", "\u202c"}
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert happened == [path.as_uri()]
    page.close()


def test_every_link_leads_somewhere(page: Page) -> None:
    page.eval_on_selector_all(".open", "all => all.forEach(button => button.click())")
    expect(page.locator(".card-row .card")).to_have_count(len(sample.CLAIMS))
    lost = page.eval_on_selector_all(
        "a[href^='#']",
        "all => all.map(a => a.getAttribute('href')).filter(to => !document.getElementById(to.slice(1)))",
    )
    assert lost == []
    others = page.eval_on_selector_all("a:not([href^='#'])", "all => all.map(a => a.getAttribute('href'))")
    assert others == ["traces/loop.construct-broadcast-mine.json"]


def test_many_implementations_scroll_in_their_own_box(browser: Browser, tmp_path: Path) -> None:
    record = sample.record()
    more = tuple(dataclasses.replace(record.impls[0], name=f"hand-in-{number}") for number in range(20))
    results = tuple(sample.result("loop.step", info.name) for info in more)
    wide = sample.record(extra=results)
    path = tmp_path / "report.html"
    report = build.build(dataclasses.replace(wide, impls=(*wide.impls, *more)))
    build.validate(report)
    path.write_text(html.render(report), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.goto(path.as_uri())
    expect(page.locator(".matrix thead th.impl")).to_have_count(23)
    assert page.evaluate("document.documentElement.scrollWidth") == 1000
    head, section = (page.locator(part).first.bounding_box() for part in (".matrix thead th", ".section-row th"))
    assert head is not None
    assert section is not None
    assert head["y"] + head["height"] <= section["y"] + 1  # it lies over no row
    page.close()


def test_the_readmes_picture_is_drawn(address: str, tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "docs" / "picture.py"
    report, picture = address.removeprefix("file://"), tmp_path / "report.png"
    run = subprocess.run([sys.executable, script, report, picture], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def contrast(ink: str, ground: str) -> float:
    def light(colour: str) -> float:
        channels = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(", ")]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(ink), light(ground)))
    return (high + 0.05) / (low + 0.05)


def test_a_card_with_a_timeline_and_a_long_name_fit_a_telephone(browser: Browser, tmp_path: Path) -> None:
    name = "m" * 200
    traced = sample.result(
        "loop.step", "mine", Verdict.VIOLATED, case="long", timeline=f"{'loop.step-mine-' * 9}.trace.json"
    )
    report = build.build(sample.record(extra=(traced,)))
    for info in report["impls"]:
        info["name"] = info["name"].replace("mine", name)
    for result in report["results"]:
        result["impl"] = result["impl"].replace("mine", name)
    report["summary"][name] = report["summary"].pop("mine")
    path = tmp_path / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    page = browser.new_page(viewport={"width": 360, "height": 800}, locale="en-US")
    page.goto(f"{path.as_uri()}#claim-loop.step")
    expect(page.locator('[id="claim-loop.step"] .card')).to_be_visible()
    page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()
