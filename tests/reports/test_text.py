from __future__ import annotations

import pytest

from reports.persian import digits, isolated
from reports.text import LINE_LIMIT, safe


@pytest.mark.parametrize(
    ("hostile", "kept"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bc\x1b(Btext", "text"),
        ("a\x00b", "a␀b"),
        ("a\x07\x7f", "a␇␡"),
        ("one\r\ntwo\tthree\n", "one\ntwo\tthree\n"),
        ("progress\rdone", "progress␍done"),
        ("\u202etxt.exe\u202c", "⟨U+202E⟩txt.exe⟨U+202C⟩"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("am\u00adir\u2060\U000e0041", "am⟨U+00AD⟩ir⟨U+2060⟩⟨U+E0041⟩"),
        ("a\u3164b", "a⟨U+3164⟩b"),
        ("\ud800", "\ufffd"),
    ],
)
def test_what_acts_or_hides_is_removed_or_made_visible(hostile: str, kept: str) -> None:
    assert safe(hostile) == kept


def test_persian_joiners_stay() -> None:
    assert safe("می‌فرستد") == "می‌فرستد"


def test_a_megabyte_keeps_its_head_and_its_tail() -> None:
    text = safe("first" + "x" * 2**20 + "last")
    assert len(text) < LINE_LIMIT + 200
    assert text.startswith("first")
    assert text.endswith("last")
    assert "characters left out" in text


def test_a_megabyte_of_unfinished_escapes_is_shortened_too() -> None:
    assert len(safe("\x1b]" * 2**19)) < LINE_LIMIT + 200


def test_numbers_take_persian_digits() -> None:
    assert digits("1,024.5") == "۱٬۰۲۴٫۵"


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("بایت هر رتبه 2T(N-1)/N است.", "2T(N-1)/N"),
        ("برای (N=2) نیست", "(N=2)"),
        ("برای (N=2 یا بیشتر)", "N=2"),
        ("خط 3.", "3"),
        ("با torch.manual_seed(seed + rank) برای هر رتبه", "torch.manual_seed(seed + rank)"),
        ("درخت: حداکثر T⌈log₂ N⌉", "T⌈log₂ N⌉"),
    ],
)
def test_a_formula_in_a_persian_sentence_keeps_its_direction(text: str, run: str) -> None:
    assert f'<bdi dir="ltr">{run}</bdi>' in isolated(text)


def test_a_long_run_may_be_broken_and_a_formula_may_not() -> None:
    code = "dist.all_reduce(gradient, op=dist.ReduceOp.SUM)"
    assert f'<bdi dir="ltr" class="long">{code}</bdi>' in isolated(f"فراخوانی {code} است.")


def test_isolating_escapes_html() -> None:
    assert "<script>" not in isolated("سلام <script>alert(1)</script>")
