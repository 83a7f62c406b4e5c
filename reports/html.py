"""report.html: one file that needs nothing else, from the values of report.json.

Everything is drawn here, once, in both languages; the script in the page only shows, hides and copies. Evidence cards
travel compressed (`pack`) until they are opened. The page's
policy allows exactly its own script and style, by their hashes, and no network at all: a hostile text that got through
the escaping could still not run.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from conformance.verdict import Verdict
from reports import figures, gantt, lanes, pack, plot, rows, score, start, stories, waits
from reports.persian import digits, isolated

HERE = Path(__file__).parent
LANGUAGES = ("en", "fa")
TRUTHS = ("exact", "conditional", "corrected", "opinion")
# With more columns than this the matrix scrolls sideways in its own box and shows signs without words.
ROOMY_COLUMNS = 5
_FONT = "vazirmatn.woff2"
_REMEMBERED = 4096  # texts; the same few are written thousands of times
HEADLINE = 400  # characters of a message in bold; it is there whole below
MANY_STARTS = 4  # implementations whose first failure is told above the scores; the others lie folded

Report = dict[str, Any]


def render(report: Report) -> str:
    """Return the whole page for a report.json that ``build.validate`` accepts."""
    templates = environment()
    sections = rows.sections(report)
    every = [row for section in sections for row in section["rows"]]
    shared = {
        "alarming": score.ALARMING,
        "gantt_left": gantt.LEFT,
        "gantt_right": gantt.RIGHT,
        "lanes_left": lanes.LEFT,
        "lanes_right": lanes.RIGHT,
    }
    card: Any = templates.get_template("cards.html.j2").make_module(shared).card  # type: ignore[attr-defined]  # a macro
    style, script = _static()
    return templates.get_template("report.html.j2").render(
        report=report,
        style=Markup(style),  # our own files, no outside text
        script=Markup(script),
        policy=policy(style, script),
        cards=pack.packed([str(card(row)) for row in every]),
        searched=pack.packed([row["search"] for row in every]),
        verdicts=(*score.ORDER, score.NOT_RUN),
        truths=TRUTHS,
        tiers=score.TIERS,
        sections=sections,
        broken=rows.broken(sections),
        starts=start.starts(report),
        many_starts=MANY_STARTS,
        decided=score.is_decided(report),
        lost=sum(result["verdict"] == Verdict.LOST.value for result in report["results"]),
        not_run=rows.not_run(sections),
        blocked=rows.blocked(sections),
        many_broken=rows.MANY_BROKEN,
        scores=score.scores(report),
        counted=len(score.counted_claims(report)),
        tally=_tally(sections),
        gallery=stories.gallery(report),
        figures=figures.figures(report),
        plot_size=(plot.WIDTH, plot.HEIGHT, plot.LEFT, plot.RIGHT, plot.TOP, plot.BOTTOM),
        suite_score=score.suite_score(report),
        impl_names=[info["name"] for info in score.implementations(report)],
        infos={info["name"]: info for info in report["impls"]},
        has_baseline=any(result.get("before") for result in report["results"]),
        roomy=len(report["impls"]) <= ROOMY_COLUMNS,
        **shared,
    )


@functools.cache
def sheet() -> str:
    """Return the sheet of all pages, with the Persian letters in it."""
    style = (HERE / "static" / "report.css").read_text(encoding="utf-8")
    font = base64.b64encode((HERE / "static" / _FONT).read_bytes()).decode()
    return style.replace(_FONT, f"data:font/woff2;base64,{font}", 1)


@functools.cache
def _static() -> tuple[str, str]:
    """The sheet, and the script with the page's own texts in both languages."""
    script = (HERE / "static" / "report.js").read_text(encoding="utf-8")
    texts = json.dumps(messages(), ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return sheet(), script.replace("/* TEXTS */ {}", texts, 1)


def _tally(sections: list[dict[str, Any]]) -> dict[str, int]:
    """For the legend: how many rows of the matrix are left when a reader asks for one verdict."""
    counts: Counter[str] = Counter()
    for row in (row for section in sections for row in section["rows"]):
        named = {verdict for column in row["columns"] for cell in column["cells"] for verdict in cell.named}
        counts.update(named | ({score.NOT_RUN} if any(not column["cells"] for column in row["columns"]) else set()))
    return counts


def policy(style: str, script: str) -> str:
    """Return what a page with this style and script may do: run exactly these, and load nothing."""

    def allowed(text: str) -> str:
        digest = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    return (
        f"default-src 'none'; style-src {allowed(style)}; script-src {allowed(script)}; "
        "img-src data:; font-src data:; base-uri 'none'; form-action 'none'"
    )


@functools.cache
def messages() -> dict[str, dict[str, str]]:
    """Return the page's own texts: ``{language: {key: text}}``."""
    return {
        language: tomllib.loads((HERE / "locale" / f"{language}.toml").read_text(encoding="utf-8"))
        for language in LANGUAGES
    }


@functools.cache
def environment() -> jinja2.Environment:
    """Return what knows the templates, the page's own texts, and how to write names and figures."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(t=_own_text, plain=_plain_text, told=_attributes, both=both, has=_has_text, cases=_cases)
    found.filters.update(
        anchor=_anchor,
        seconds=_seconds,
        case=case_words,
        parameters=_parameters,
        headline=_headline,
        alike=rows.ranks_alike,
        gantt=gantt.pictures,
        lanes=lanes.picture,
    )
    found.filters.update(drawing=waits.drawing)
    return found


@functools.lru_cache(maxsize=_REMEMBERED)
def _own_text(key: str, **values: object) -> Markup:
    """A text of the page; ``values`` fill its {names}, numbers with each language's digits.

    What is the same everywhere is written in English, with its key for the script, which has both languages. What has
    values, or runs of another direction, is written in both.
    """
    texts = {language: messages()[language][key].format(**local(values, language)) for language in LANGUAGES}
    if values or isolated(texts["fa"]) != Markup.escape(texts["fa"]):
        return both(texts)
    return Markup('<span data-t="{}">{}</span>').format(key, texts["en"])


@functools.lru_cache(maxsize=_REMEMBERED)
def _cases(verdict: str, count: int) -> Markup:
    """So many cases have this verdict, in words: ``1 holds``, ``3 hold``."""
    texts = {}
    for language in LANGUAGES:
        words = messages()[language]
        word = (
            words["verdict." + verdict] if count == 1 else words.get("several." + verdict, words["verdict." + verdict])
        )
        texts[language] = words["cases"].format(word=word, **local({"n": count}, language))
    return both(texts)


def _plain_text(key: str, language: str) -> str:
    """The same without markup."""
    return messages()[language][key]


@functools.lru_cache(maxsize=_REMEMBERED)
def _attributes(**keys: str) -> Markup:
    """Attributes in English, with their texts' keys for the script: ``_attributes(title="theme_hint")``."""
    pairs = [(name.replace("_", "-"), key) for name, key in keys.items()]
    written = Markup(" ").join(Markup('{}="{}"').format(name, messages()["en"][key]) for name, key in pairs)
    return Markup('{} data-l10n="{}"').format(written, " ".join(f"{name}={key}" for name, key in pairs))


def _has_text(key: str) -> bool:
    return key in messages()["en"]


def local(values: Mapping[str, object], language: str) -> dict[str, object]:
    """Return ``values`` as a text of this language writes them: whole numbers with its digits."""
    return {
        name: digits(f"{value:,}") if language == "fa" and isinstance(value, int) else value
        for name, value in values.items()
    }


def both(text: Mapping[str, str]) -> Markup:
    """A text of the ledger in both languages; English where there is no Persian."""
    return _both(text["en"], text["fa"] or text["en"])


@functools.lru_cache(maxsize=_REMEMBERED)
def _both(en: str, fa: str) -> Markup:
    return _in_language("en", Markup.escape(en)) + _in_language("fa", isolated(fa))


def _in_language(language: str, text: Markup) -> Markup:
    return Markup('<span class="{0}" lang="{0}">{1}</span>').format(language, text)  # the sheet gives the direction


def _anchor(claim: str) -> str:
    return f"claim-{claim}"


def case_words(name: str) -> Markup:
    """A check's name as words, its parameters as they are: ``test_ring_sends[4]`` reads ``ring sends [4]``."""
    words, bracket, parameters = name.partition("[")
    spoken = words.removeprefix("test_").replace("_", " ") if words.isidentifier() else words
    return Markup("{} <code>{}</code>").format(spoken, bracket + parameters) if bracket else Markup.escape(spoken)


def _parameters(name: str) -> str:
    """What tells a case from the others of its check; its whole name where nothing does."""
    return name.partition("[")[2].removesuffix("]") or name


def _headline(message: str) -> tuple[str, str]:
    """The first line of a message, and the rest; of an endless first line the beginning, and then all of it."""
    first, _, rest = message.partition("\n")
    return (first, rest) if len(first) <= HEADLINE else (first[: HEADLINE - 1] + "…", message)


@functools.lru_cache(maxsize=_REMEMBERED)
def _seconds(value: float) -> Markup:
    """A duration in both languages: ``35 ms``, ``1.2 s``, ``2 min 5 s``."""
    if value < 1:
        return _own_text("lasted_ms", n=round(value * 1000))
    if value >= 120:
        return _own_text("lasted_min", minutes=int(value // 60), seconds=int(value % 60))
    told = f"{value:.1f}"
    written = {"en": told, "fa": digits(told)}
    return both({language: messages()[language]["lasted_s"].format(n=written[language]) for language in LANGUAGES})
