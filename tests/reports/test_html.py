from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from conformance.ledger import Ledger
from conformance.verdict import RankReport, Text, Verdict
from fixtures.world.outcome import Ending
from reports import build, html, pack, plot
from reports.axes import Kind
from tests.reports import sample

# What a page can load or run something with.
LOADING = {"src", "srcset", "data", "poster", "action", "formaction", "background", "ping", "style"}


class Page(HTMLParser):
    """Every element with its attributes, and the text outside script and style; evidence cards, too."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._raw = ""
        self.feed(whole(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._raw = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self._raw = ""

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def whole(text: str) -> str:
    """The page with its evidence cards in their places, as the script puts them."""
    packed = re.search(r'<template id="cards">(.*?)</template>', text)
    assert packed is not None
    cards = iter(pack.unpacked(packed[1]))
    return re.sub(r'<tr [^>]*class="card-row[^>]*><td [^>]*>', lambda row: row[0] + next(cards), text)


@pytest.fixture(scope="module")
def source() -> str:
    return html.render(build.build(sample.record()))


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_the_page_loads_nothing(page: Page) -> None:
    for tag, attributes in page.elements:
        loading = LOADING & attributes.keys()
        assert not loading, f"<{tag}> has {loading}"
        assert not [name for name in attributes if name.startswith("on")], tag
    assert not [
        tag for tag, _ in page.elements if tag in ("img", "iframe", "object", "embed", "audio", "video", "base")
    ]
    assert [link["href"] for link in page.named("link")] == ["data:,"]


def test_the_sheet_and_the_script_name_no_other_place(source: str) -> None:
    sheet = re.search(r"<style>(.*?)</style>", source, re.S)
    script = re.search(r"<script>(.*?)</script>", source, re.S)
    assert sheet is not None
    assert script is not None
    without_font, fonts = re.subn(r'url\("data:font/woff2;base64,[\w+/=]+"\)', "", sheet[1])
    assert fonts == 1
    assert not re.search(r"url\(|@import|//\w", without_font)
    assert not re.search(r"https?:|fetch|XMLHttpRequest|import\(|WebSocket|innerHTML", script[1])


def test_links_lead_within_the_page_or_to_its_traces(page: Page) -> None:
    targets = [str(link["href"]) for link in page.named("a")]
    assert [target for target in targets if not target.startswith(("#", "traces/"))] == []


def test_links_within_the_page_have_targets(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {str(link["href"])[1:] for link in page.named("a") if str(link["href"]).startswith("#")}
    assert targets <= set(ids)


def test_every_text_that_the_script_translates_is_known(source: str) -> None:
    keys = re.findall(r'data-t="([^"]+)"', whole(source))
    pairs = " ".join(re.findall(r'data-l10n="([^"]+)"', whole(source))).split()
    wanted = {*keys, *(pair.partition("=")[2] for pair in pairs)}
    assert wanted <= html.messages()["fa"].keys()


def test_texts_are_packed_and_unpacked() -> None:
    texts = ["</template>", "فارسی", "", "<b>" * 10_000]
    packed = pack.packed(texts)
    assert pack.unpacked(packed) == texts
    assert pack.packed(texts) == packed
    assert len(packed) < 1_000
    assert re.fullmatch(r"[A-Za-z0-9+/]+=*", packed)


def test_both_languages_have_the_same_texts_and_places() -> None:
    english, persian = (html.messages()[language] for language in html.LANGUAGES)
    assert english.keys() == persian.keys()
    places = {key: set(re.findall(r"{\w+}", text)) for key, text in english.items()}
    assert places == {key: set(re.findall(r"{\w+}", text)) for key, text in persian.items()}


def test_every_word_of_the_verdicts_has_a_text() -> None:
    wanted = [f"{kind}.{verdict.value}" for kind in ("verdict", "meaning") for verdict in Verdict]
    assert [key for key in wanted if key not in html.messages()["en"]] == []


def test_hostile_texts_stay_text() -> None:
    hostile = sample.result(
        "loop.step",
        "mine",
        Verdict.CRASHES,
        case=sample.HOSTILE,
        message=sample.HOSTILE,
        expected=sample.HOSTILE,
        observed=sample.HOSTILE,
        unit=sample.HOSTILE,
        timeline="javascript:alert(1)",
        rerun=f"pytest '{sample.HOSTILE}\" onclick=\"alert(3)'",
        hint=Text(en=sample.HOSTILE, fa=sample.HOSTILE),
        ranks=(RankReport(rank=0, ending=sample.HOSTILE, detail=sample.HOSTILE, output="</pre><u>" * 100_000),),
    )
    text = html.render(build.build(sample.record(extra=(hostile,))))
    page = Page(text)
    assert len(page.named("script")) == 1
    text = whole(text)
    assert page.named("img") == []
    assert page.named("u") == []
    assert [name for _, attributes in page.elements for name in attributes if name.startswith("on")] == []
    assert "<script>alert(1)</script>" in page.text
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "\u202e" not in text
    assert len(text) < 700_000


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("test_ring_sends_its_share[4]", "ring sends its share <code>[4]</code>"),
        ("world_size=4", "world_size=4"),
        ("test_one", "one"),
        ("test_x[<b>]", "x <code>[&lt;b&gt;]</code>"),
    ],
)
def test_a_checks_name_reads_as_words(name: str, shown: str) -> None:
    assert html.case_words(name) == shown


def test_an_empty_run_makes_a_page(page: Page) -> None:
    record = sample.record()
    empty: dict[str, Any] = build.build(record)
    empty |= {"results": [], "scenarios": [], "claims": [], "summary": {}, "impls": [], "collected": 0, "reported": 0}
    build.validate(empty)
    assert "Lockstep" in html.render(empty)


def test_the_plot_has_every_measured_point_and_the_formula() -> None:
    [picture] = plot.pictures(build.build(sample.record()), ["ring-bytes"], plot.Shape(y=Kind.BYTES))
    assert [(series.impl, len(series.dots)) for series in picture.series] == [("reference", 5), ("mine", 5)]
    assert [tick.label for tick in picture.x_ticks] == [str(size) for size in sample.WORLD_SIZES]
    assert picture.unit == "MiB"
    assert picture.table[0] == ("ring-bytes", "reference", "2", "16,777,216", "16,777,216")


def test_a_point_on_the_formula_lies_on_the_curve() -> None:
    [picture] = plot.pictures(build.build(sample.record()), ["ring-bytes"], plot.Shape(y=Kind.BYTES))
    places = set(re.findall(r"[ML]([\d.]+),([\d.]+)", picture.curves[0].path))
    for x, y, _ in picture.series[0].dots:
        assert (f"{x:g}", f"{y:g}") in places


def test_the_curve_goes_through_its_points_and_never_turns_back() -> None:
    points = [(float(n), 2 * (n - 1) / n) for n in (2, 3, 4, 8)]
    curve = plot.smooth(points)
    assert set(points) <= set(curve)
    assert [value for _, value in curve] == sorted(value for _, value in curve)


def test_the_persian_font_has_every_letter_of_the_pages_texts_and_its_licence() -> None:
    style = (html.HERE / "static" / "report.css").read_text(encoding="utf-8")
    spans = re.findall(r"U\+([0-9A-F]+)(?:-([0-9A-F]+))?", style)
    has = {code for low, high in spans for code in range(int(low, 16), int(high or low, 16) + 1)}
    texts = "".join(html.messages()["fa"].values()) + "".join(claim.text.fa for claim in Ledger.load().claims.values())
    arabic = {letter for letter in texts if 0x600 <= ord(letter) <= 0x6FF or letter == "\u200c"}
    assert sorted(letter for letter in arabic if ord(letter) not in has) == []
    assert "SIL OPEN FONT LICENSE" in (html.HERE / "static" / "vazirmatn-OFL.txt").read_text(encoding="utf-8")


def test_a_run_that_decided_nothing_is_not_called_good() -> None:
    report = build.build(sample.record())
    report["results"] = [result for result in report["results"] if result["verdict"] == "not-checked"]
    page = html.render(report)
    assert "Nothing was decided" in page
    assert "start good" not in page


def test_an_endless_first_line_is_no_headline() -> None:
    assert html._headline("short\nrest") == ("short", "rest")
    first, rest = html._headline("A" * 5000)
    assert len(first) == html.HEADLINE
    assert rest == "A" * 5000


def test_what_was_lost_is_told_at_the_top() -> None:
    lost = sample.result("loop.same-init", "mine", Verdict.LOST, case="n=9")
    assert "2 cases were lost" in html.render(build.build(sample.record(extra=(lost,))))


@pytest.mark.parametrize("ending", list(Ending))
def test_how_a_rank_ended_is_told_in_both_languages(ending: Ending) -> None:
    ranks = (RankReport(rank=0, ending=ending.value, detail="", output=""),)
    report = build.build(
        sample.record(extra=(sample.result("loop.mean", "mine", Verdict.CRASHES, case="odd", ranks=ranks),))
    )
    shown = whole(html.render(report))
    assert f">{html.messages()['en'][f'ending.{ending}']}<" in shown
    assert f'data-t="ending.{ending}"' in shown


@pytest.mark.parametrize(
    ("seconds", "en", "fa"),
    [(0.0351, "35 ms", "۳۵ میلی‌ثانیه"), (1.25, "1.2 s", "۱٫۲ ثانیه"), (125.0, "2 min 5 s", "۲ دقیقه و ۵ ثانیه")],
)
def test_a_duration_is_told_in_both_languages(seconds: float, en: str, fa: str) -> None:
    told = html.environment().filters["seconds"](seconds)
    assert f">{en}<" in told
    assert f">{fa}<" in told


def test_why_there_is_no_script_stands_on_the_card_in_both_languages() -> None:
    why = Text(en="it takes a clock", fa="ساعت می‌خواهد")
    record = sample.record(extra=(sample.result("loop.step", "mine", Verdict.VIOLATED, no_script=why),))
    text = whole(html.render(build.build(record)))
    assert "it takes a clock" in text
    assert "ساعت می‌خواهد" in text
