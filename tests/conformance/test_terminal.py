"""What the terminal shows of a record: a card for each fault, bounded, and lines that nobody has to guess at."""

from __future__ import annotations

import pytest

from conformance import record, terminal
from conformance.ledger import Ledger
from conformance.verdict import Claim, ImplInfo, RankReport, Record, Result, ScenarioStory, Text, Tier, Verdict

CLAIM = "collectives.values.allreduce"
CIRCLE = "They wait in a circle: 0 -> 1 -> 2 -> 3 -> 0."


class Paper:
    """A reporter that keeps what is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def section(self, title, **_):
        self.lines.append(title)

    def write_line(self, line, **_):
        self.lines.append(line)


def _result(case: str, verdict: Verdict = Verdict.VIOLATED, message: str = "wrong") -> Result:
    return Result(claim=CLAIM, case=case, tier=Tier.CORE, impl="mine", verdict=verdict, message=message)


def _written(results, *, error: str = "", stories=(), explain: bool = False) -> str:
    made = Record(
        suite={},
        run={},
        environment={},
        impls=(ImplInfo(name="mine", path="", sha256="", blocks=(), error=error),),
        claims=(),
        results=tuple(results),
        scenarios=tuple(stories),
    )
    paper = Paper()
    terminal.write(paper, made, explain=explain)
    return "\n".join(paper.lines)


def test_functions_that_fail_under_one_claim_have_a_card_each():
    names = ("ring_allreduce", "tree_allreduce", "all_reduce")
    text = _written([_result(f"test_sum[{n}-{name}]", message=f"{name} fails") for n in (2, 3) for name in names])
    assert text.count(f"{CLAIM} violated (mine, core, 2 cases)") == 3
    assert all(f"{name} fails" in text for name in names)


def test_crashes_at_different_lines_have_a_card_each_up_to_three():
    crashes = [
        _result(f"test_{i}", Verdict.CRASHES, f"rank 0 raised ValueError at ddp.py:{i} in f: no")
        for i in (1, 1, 2, 3, 4, 5)
    ]
    text = _written(crashes)
    assert text.count(f"{CLAIM} crashes (mine, core") == 3
    assert f"2 more kinds of failure of {CLAIM}" in text


def test_implementation_that_cannot_be_imported_is_told_once_and_has_no_cards():
    reason = "mine cannot be imported: rank 0 raised SystemExit"
    text = _written([_result(f"test_{i}", Verdict.CRASHES, reason) for i in range(5)], error=reason)
    assert text.count(reason) == 1
    assert "nothing was examined: all 5 checks" in text
    assert f"{CLAIM} crashes (" not in text


@pytest.mark.parametrize(("verdict", "told"), [(Verdict.NOT_PROVIDED, True), (Verdict.HOLDS, False)])
def test_run_in_which_nothing_was_examined_says_so(verdict, told):
    text = _written([_result("test_1", Verdict.NOT_PROVIDED), _result("test_2", verdict)])
    assert ("mine: nothing was examined" in text) is told


def test_remarks_are_lines_of_the_summary():
    text = _written([_result("test_1", Verdict.HOLDS)], error="the adapters table has 'x'\nring asks for 'foo'")
    assert "mine: the adapters table has 'x'\nmine: ring asks for 'foo'" in text


def test_long_lines_of_a_story_are_wrapped_and_never_cut():
    said = Text(en="said", fa="گفته")
    waits = "; ".join(f"rank {i} waits in send #0 to rank {i + 1} (16 floats, ddp.py:3)" for i in range(4))
    story = ScenarioStory(
        id="it",
        claim=CLAIM,
        title=said,
        symptom=said,
        diagnosis=said,
        cure=said,
        verdict=Verdict.HOLDS,
        evidence=(f"diagnosis: {waits}. {CIRCLE}",),
    )
    text = _written([_result("test_1", Verdict.HOLDS)], stories=[story], explain=True)
    assert CIRCLE in " ".join(text.split())
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_what_a_rank_said_is_cut_to_what_tells_something():
    said = "terminate called without an active exception\n  what():  sizes differ\nFatal Python error: Aborted\n"
    ranks = (RankReport(rank=0, ending="killed", output=said),)
    result = Result(claim=CLAIM, case="c", tier=Tier.CORE, impl="mine", verdict=Verdict.CRASHES, ranks=ranks)
    text = "\n".join(terminal.card([result]))
    assert "sizes differ" in text
    assert "Fatal" not in text


@pytest.mark.parametrize("verdict", [Verdict.CRASHES, Verdict.HANGS, Verdict.VIOLATED])
def test_hint_of_the_claim_is_for_wrong_values_only(verdict):
    claim: Claim = Ledger.load().claims[CLAIM]
    hint = record._with_hint(_result("test_1", verdict), {CLAIM: claim}, set(), {}).hint
    assert (hint == claim.hint) is (verdict is Verdict.VIOLATED)
    assert hint.en
    assert hint.fa
    assert record._with_hint(_result("test_1", verdict), {CLAIM: claim}, {"mine"}, {}).hint == record.FIX_THE_IMPORT


def test_reason_to_refuse_is_told_once_with_its_checks():
    reason = "ddp.py:18: model.cuda() asks for cuda, which this machine does not have. --device-shim moves it"
    text = _written([_result(f"test_{i}", Verdict.REFUSES, reason) for i in range(5)])
    assert text.count(reason) == 1
    assert f"mine: refuses (5 checks): {reason}" in text


def test_what_is_there_and_could_not_be_used_is_told_with_the_reason():
    lacks = _result("test_1", Verdict.NOT_PROVIDED, "mine does not provide gpipe: mine has no gpipe")
    stuck = _result("test_2", Verdict.NOT_PROVIDED, "class PipelineStage has no method train_step, step, run")
    assert "mine: nothing was examined: class PipelineStage has no method train_step" in _written([lacks, lacks, stuck])
    assert "nothing was examined: no check in this run" in _written([lacks])
