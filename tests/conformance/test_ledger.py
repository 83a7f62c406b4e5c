"""What the ledger holds, and what it says when its files do not fit together."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.ledger import HOME, SECTIONS, Ledger, LedgerError, UnknownClaim
from conformance.verdict import Truth, Verdict

EXPECTED_IDS = Path(__file__).with_name("claim_ids.txt").read_text(encoding="utf-8").split()

ENTRY = """
[[claim]]
id = "{id}"
truth = "{truth}"
source = "a paper"
{more}
[claim.text]
en = "what is printed"
fa = "آنچه چاپ شده"
[claim.statement]
en = "what is true"
fa = "آنچه درست است"
[claim.hint]
en = "look there"
fa = "آنجا را ببینید"
"""

Write = Callable[..., Path]


def entry(name: str, *, truth: str = "exact", more: str = "") -> str:
    return ENTRY.format(id=name, truth=truth, more=more)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes one section's claims.toml and returns the folder of all sections."""

    def writing(*entries: str, section: str = "loop") -> Path:
        folder = tmp_path / section
        folder.mkdir(exist_ok=True)
        (folder / "claims.toml").write_text("".join(entries), encoding="utf-8")
        return tmp_path

    return writing


def complaints(home: Path, killed: Path | None = None) -> str:
    with pytest.raises(LedgerError) as caught:
        Ledger.load(home, killed or home / "killed.json")
    return str(caught.value)


# The ledger as committed


def test_the_ledger_holds_exactly_the_claims_of_the_cheatsheet() -> None:
    assert sorted(Ledger.load().claims) == sorted(EXPECTED_IDS)


def test_the_list_of_claims_names_each_once_and_is_sorted() -> None:
    assert sorted(set(EXPECTED_IDS)) == EXPECTED_IDS


def test_claims_come_in_the_order_of_the_cheatsheet() -> None:
    sections = [claim.section for claim in Ledger.load().claims.values()]

    assert sections == sorted(sections, key=SECTIONS.index)


def test_only_claims_that_no_measurement_decides_are_opinions() -> None:
    assert [claim.id for claim in Ledger.load().claims.values() if claim.truth is Truth.OPINION] == [
        "faq.dualpipe-under-1000"
    ]


def test_facts_told_twice_are_counted_once() -> None:
    twice = {claim.id: claim.same_as for claim in Ledger.load().claims.values() if claim.same_as}

    assert twice == {
        "faq.gpipe-bubble": "pipeline.gpipe.bubble",
        "faq.gpipe-or-1f1b": "pipeline.1f1b.same-bubble",
        "faq.mixed-precision-half": "memory.mixed-7b",
        "zero.comm.3": "strategies.fsdp.traffic",
    }


def test_persian_texts_are_written_in_persian_letters() -> None:
    arabic_yeh_and_kaf = ("\N{ARABIC LETTER YEH}", "\N{ARABIC LETTER KAF}")
    for claim in Ledger.load().claims.values():
        for text in (claim.text, claim.statement, claim.hint):
            assert any("\u0600" <= letter <= "\u06ff" for letter in text.fa), claim.id
            assert not any(letter in text.fa for letter in arabic_yeh_and_kaf), claim.id
            assert not any("\u0600" <= letter <= "\u06ff" for letter in text.en), claim.id


# Choosing


def test_patterns_choose_claims_in_ledger_order(write: Write) -> None:
    ledger = Ledger.load(write(entry("loop.b"), entry("loop.a"), entry("calls.c")))

    assert [claim.id for claim in ledger.match(["calls.*", "loop.?"])] == ["loop.b", "loop.a", "calls.c"]


def test_the_name_of_a_section_chooses_all_its_claims_whatever_their_ids(write: Write) -> None:
    write(entry("faq.z"), section="faq")
    ledger = Ledger.load(write(entry("loop.a"), entry("calls.c")))

    assert [claim.id for claim in ledger.match(["loop"])] == ["loop.a", "calls.c"]


def test_no_pattern_chooses_every_claim(write: Write) -> None:
    assert len(Ledger.load(write(entry("loop.a"), entry("loop.b"))).match([])) == 2


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("loop.meen", "'loop.mean'"), ("loopp", "'loop'"), ("lop.*", "'loop.*'"), ("loop.**.mean", "'loop.mean'")],
)
def test_a_pattern_that_fits_nothing_is_an_error_with_the_nearest_name(write: Write, asked: str, meant: str) -> None:
    ledger = Ledger.load(write(entry("loop.mean"), entry("loop.step")))

    with pytest.raises(UnknownClaim) as caught:
        ledger.match(["loop.step", asked])

    assert asked in str(caught.value)
    assert meant in str(caught.value)
    assert "pytest --list-claims" in str(caught.value)


def test_a_claim_that_is_another_is_counted_as_that_one(write: Write) -> None:
    ledger = Ledger.load(write(entry("loop.a"), entry("loop.b", more='same_as = "loop.a"')))

    assert ledger.counted_as("loop.b").id == "loop.a"
    assert ledger.counted_as("loop.a").id == "loop.a"


def test_the_listing_names_every_claim_once_and_their_number(write: Write) -> None:
    write(entry("faq.z", more='same_as = "loop.a"'), section="faq")
    listing = Ledger.load(write(entry("loop.a", truth="conditional"))).listing()

    assert listing.splitlines() == [
        "loop  (all of it: --claim=loop)",
        "  loop.a  conditional  what is true",
        "",
        "faq  (all of it: --claim=faq)",
        "  faq.z   exact        the same as loop.a",
        "",
        "2 claims",
    ]


# Refusing


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ('hnit = "x"', "loop/claims.toml: loop.a: unknown field 'hnit', perhaps 'hint'"),
        ('formula = ""', "loop.a: formula must be a text that is not empty, not ''"),
        ("line = 0", "loop.a: line must be a line number of the cheatsheet, not 0"),
        ("line = true", "loop.a: line must be a line number of the cheatsheet, not True"),
        ('needs = "loop.b"', "loop.a: needs must be a list of claim ids, not 'loop.b'"),
        ('needs = ["loop.aa"]', "loop.a: needs names 'loop.aa', which is no claim, perhaps 'loop.a'"),
        ('same_as = "zero.x"', "loop.a: same_as names 'zero.x', which is no claim"),
        ('needs = ["loop.a"]', "loop.a: needs itself: loop.a -> loop.a"),
    ],
)
def test_a_field_that_is_wrong_is_named_with_file_and_claim(write: Write, more: str, complaint: str) -> None:
    assert complaint in complaints(write(entry("loop.a", more=more)))


def test_a_truth_that_does_not_exist_is_refused_with_those_that_do(write: Write) -> None:
    assert "truth must be one of exact, conditional, corrected, opinion, not 'true'" in complaints(
        write(entry("loop.a", truth="true"))
    )


@pytest.mark.parametrize("name", ["loop", "Loop.mean", "loop..mean", "loop mean", ""])
def test_an_id_that_is_no_slug_is_refused(write: Write, name: str) -> None:
    assert "id must be" in complaints(write(entry(name)))


@pytest.mark.parametrize("missing", ["id", "truth", "source"])
def test_a_claim_without_a_needed_field_is_refused(write: Write, missing: str) -> None:
    lines = [line for line in entry("loop.a").splitlines() if not line.startswith(f"{missing} =")]

    assert f"{missing} is missing" in complaints(write("\n".join(lines)))


@pytest.mark.parametrize(
    ("line", "field"), [('fa = "آنچه درست است"', "statement.fa"), ('en = "look there"', "hint.en")]
)
def test_a_text_without_one_of_its_languages_is_refused(write: Write, line: str, field: str) -> None:
    assert f"loop.a: {field} is missing or empty" in complaints(write(entry("loop.a").replace(line, "")))


@pytest.mark.parametrize("truth", ["conditional", "corrected"])
def test_a_condition_or_correction_that_only_repeats_the_text_is_refused(write: Write, truth: str) -> None:
    repeating = entry("loop.a", truth=truth).replace("what is true", "what is printed")

    assert f"{truth}, but statement.en only repeats the text" in complaints(write(repeating))


def test_an_exact_claim_may_repeat_its_text(write: Write) -> None:
    repeating = entry("loop.a").replace("what is true", "what is printed")

    assert Ledger.load(write(repeating)).claims["loop.a"].statement.en == "what is printed"


def test_an_id_used_twice_is_refused_with_both_files(write: Write) -> None:
    write(entry("loop.a"), section="faq")

    assert "faq/claims.toml: loop.a: the id is used twice, first in loop/claims.toml" in complaints(
        write(entry("loop.a"))
    )


def test_claims_that_need_one_another_are_refused_with_the_way_round(write: Write) -> None:
    home = write(
        entry("loop.a", more='needs = ["loop.b"]'),
        entry("loop.b", more='same_as = "loop.c"'),
        entry("loop.c", more='needs = ["loop.a"]'),
    )

    assert "loop.a -> loop.b -> loop.c -> loop.a" in complaints(home)


def test_needing_a_claim_that_is_counted_as_another_is_refused(write: Write) -> None:
    home = write(
        entry("loop.a"), entry("loop.b", more='same_as = "loop.a"'), entry("loop.c", more='needs = ["loop.b"]')
    )

    assert "loop.c: needs names 'loop.b', which is counted as 'loop.a': name that one" in complaints(home)


def test_all_problems_of_all_files_are_reported_at_once(write: Write) -> None:
    write("[[claim]\n", section="faq")
    said = complaints(write(entry("loop.a", truth="no"), entry("loop.b", more="line = -1")))

    assert "faq/claims.toml: not TOML" in said
    assert "loop.a: truth" in said
    assert "loop.b: line" in said


@pytest.mark.parametrize("content", ["[claim]\nid = 'loop.a'\n", "claim = 1\n"])
def test_a_single_table_instead_of_a_list_of_tables_is_explained(write: Write, content: str) -> None:
    assert "starts with [[claim]], with two brackets" in complaints(write(content))


def test_anything_but_claims_in_a_file_is_refused(write: Write) -> None:
    assert "loop/claims.toml: title: only [[claim]] tables belong here" in complaints(
        write('title = "x"\n', entry("loop.a"))
    )


# The mutants that break a claim


def test_the_mutants_that_break_a_claim_come_from_the_committed_table(write: Write) -> None:
    home = write(entry("loop.a"), entry("loop.b"))
    killed = home / "killed.json"
    killed.write_text(json.dumps({"digest": "0", "claims": {"loop.a": ["no_divide", "two"]}}))

    claims = Ledger.load(home, killed).claims

    assert claims["loop.a"].killed_by == ("no_divide", "two")
    assert claims["loop.b"].killed_by == ()


def test_without_a_mutant_table_no_mutant_is_named(write: Write) -> None:
    home = write(entry("loop.a"))

    assert Ledger.load(home, home / "killed.json").claims["loop.a"].killed_by == ()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"claims": {"loop.z": ["m"]}}', "killed.json: loop.z: no such claim"),
        ("{", "killed.json: not a table of mutants"),
        ('{"claims": []}', "killed.json: not a table of mutants"),
        ("[]", "killed.json: not a table of mutants"),
    ],
)
def test_a_mutant_table_that_does_not_fit_is_refused(write: Write, content: str, complaint: str) -> None:
    home = write(entry("loop.a"))
    (home / "killed.json").write_text(content)

    assert complaint in complaints(home)


CASE_HINT = """
[[claim.hints]]
cases = ["test_clipping_*"]
en = "look at the norm"
fa = "نرم را ببینید"
"""


@pytest.mark.parametrize(
    ("case", "hint"),
    [
        ("test_clipping_by_norm[2]", "look at the norm"),
        ("test_training[2]", "look there"),
        ("test_training", "look there"),
        ("test_training[2-embedding]", "look at the ids"),
        ("test_clipping_by_norm[2-embedding]", "look at the norm"),
    ],
)
def test_a_hint_for_some_cases_takes_the_place_of_the_claims(write: Write, case: str, hint: str) -> None:
    of_embeddings = CASE_HINT.replace("test_clipping_*", "*[*embedding]").replace("the norm", "the ids")
    home = write(entry("loop.a") + CASE_HINT + of_embeddings)

    assert Ledger.load(home).claims["loop.a"].hint_for(case).en == hint


def test_a_hint_for_cases_that_hang_is_for_no_others(write: Write) -> None:
    of_hangs = CASE_HINT.replace("look at the norm", "look who waits") + 'verdict = "hangs"\n'
    claim = Ledger.load(write(entry("loop.a") + of_hangs + CASE_HINT)).claims["loop.a"]

    verdicts = (Verdict.HANGS, Verdict.VIOLATED, Verdict.CRASHES)
    told = [claim.hint_for("test_clipping_by_norm", verdict) for verdict in verdicts]
    assert [text and text.en for text in told] == ["look who waits", "look at the norm", None]


def test_a_hint_is_for_a_verdict_that_is_broken(write: Write) -> None:
    home = write(entry("loop.a") + CASE_HINT + 'verdict = "holds"\n')

    assert "verdict must be violated, hangs or crashes, not 'holds'" in complaints(home)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [('cases = ["test_clipping_*"]', "cases must be a list"), ('en = "look at the norm"', "hints 1.en is missing")],
)
def test_a_hint_for_some_cases_names_them_and_has_both_languages(write: Write, line: str, complaint: str) -> None:
    home = write(entry("loop.a") + CASE_HINT.replace(line, ""))

    assert complaint in complaints(home)


def test_every_hint_for_some_cases_fits_a_check_of_its_section() -> None:
    patterns = [
        (claim.section, glob)
        for claim in Ledger.load().claims.values()
        for item in claim.case_hints
        for glob in item.cases
    ]
    sources = {
        section: "\n".join(path.read_text(encoding="utf-8") for path in (HOME / section).glob("test_*.py"))
        for section, _ in patterns
    }
    names = {section: re.findall(r"^def (test_\w+)", source, re.MULTILINE) for section, source in sources.items()}

    assert patterns
    for section, pattern in patterns:
        function, _, parameter = pattern.rstrip("]").partition("[")
        assert fnmatch.filter(names[section], function), pattern
        assert parameter.strip("*") in sources[section], pattern
