"""The pages about several reports: whole, in both languages, loading nothing, and inert."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conformance.verdict import Verdict
from reports import build, html, tables_html
from reports.compare import Kind, _surroundings, compare
from reports.merge import merge
from tests.reports import sample
from tests.reports.test_html import LOADING


class Page(HTMLParser):
    """The elements, and the text outside of script and style."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements[-1:] and self.elements[-1][0] not in ("script", "style"):
            self.text += data


EXTRA = {"case": f"world_size=8 {sample.HOSTILE}", "rerun": f"pytest -k '{sample.HOSTILE}'"}


def compared() -> str:
    old = build.build(sample.record(extra=(sample.result("loop.same-init", "mine", **EXTRA),)))
    worse = sample.result("loop.same-init", "mine", Verdict.CRASHES, message=sample.HOSTILE, **EXTRA)
    new = build.build(sample.record(extra=(worse,)))
    new["environment"] = {**new["environment"], "torch": sample.HOSTILE}
    return tables_html.compared(compare(old, new))


def merged(folder: Path, *, by_claim: bool) -> str:
    report = build.build(sample.record(extra=(sample.result("loop.same-init", "mine", **EXTRA),)))
    (folder / "<b>bold").mkdir()
    (folder / "<b>bold" / "report.json").write_text(build.dumps(report), encoding="utf-8")
    (folder / "torn").mkdir()
    (folder / "torn" / "report.json").write_text("{", encoding="utf-8")
    return tables_html.merged(merge([folder]), by_claim=by_claim)


@pytest.fixture(scope="module", params=["comparison", "sections", "claims"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "comparison":
        return compared()
    return merged(tmp_path_factory.mktemp("class"), by_claim=request.param == "claims")


def test_the_page_loads_nothing_and_runs_only_its_own_script(source: str) -> None:
    page = Page(source)
    assert not [attributes for _, attributes in page.elements if LOADING & attributes.keys()]
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert not [tag for tag, _ in page.elements if tag in ("img", "b", "iframe")]
    assert [attributes["href"] for tag, attributes in page.elements if tag == "link"] == ["data:,"]


def test_nothing_that_acts_on_a_reader_is_in_it(source: str) -> None:
    assert not any(sign in source for sign in "\x1b\u202e\x00")


def test_every_text_of_the_page_is_there_in_both_languages(source: str) -> None:
    classes = [attributes.get("class") for _, attributes in Page(source).elements]
    assert classes.count("en") == classes.count("fa") > 10


def test_the_comparison_says_its_outcome_and_what_differs_around_the_runs() -> None:
    text = Page(compared()).text
    assert "1 result has regressed." in text
    assert "۱ نتیجه پسرفت کرده است." in text
    assert text.index("Around the runs") < text.index("What passed is broken")


def test_the_class_names_what_was_left_out(tmp_path: Path) -> None:
    text = Page(merged(tmp_path, by_claim=False)).text
    assert "<b>bold" in text
    assert "torn/report.json is not JSON" in text


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_change_has_its_words(kind: Kind) -> None:
    for language in html.LANGUAGES:
        assert tables_html.words(language)[f"kind.{kind}"]
        assert kind is Kind.SAME or tables_html.words(language)[f"kind_about.{kind}"]


def test_both_languages_have_the_same_texts_with_the_same_names() -> None:
    english, persian = (tables_html.words(language) for language in html.LANGUAGES)
    assert english.keys() == persian.keys()
    for key, text in english.items():
        assert set(re.findall(r"{(\w+)}", text)) == set(re.findall(r"{(\w+)}", persian[key])), key


def test_why_two_reports_cannot_be_compared_is_told_in_both_languages() -> None:
    old, new = (build.build(sample.record()) for _ in range(2))
    new["impls"] = [{**info, "name": f"other-{info['name']}"} for info in new["impls"]]
    new["results"] = [{**result, "impl": f"other-{result['impl']}"} for result in new["results"]]
    text = Page(tables_html.compared(compare(old, new))).text
    assert "they have no implementation in common" in text
    assert "پیاده‌سازی مشترکی ندارند" in text


def test_what_surrounds_a_run_has_a_name_in_both_languages() -> None:
    old, new = (build.build(sample.record()) for _ in range(2))
    new["environment"] = {**new["environment"], "torch": "3.0", "cpus": 99}
    text = Page(tables_html.compared(compare(old, new))).text
    assert "پردازنده‌ها" in text
    assert {f"around.{name}" for name in _surroundings(new)} - tables_html.words("fa").keys() == set()
