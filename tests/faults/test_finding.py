"""A symptom in somebody's words leads to the entry that is about it."""

from __future__ import annotations

import pytest

from fixtures.faults.__main__ import main
from fixtures.faults.finding import MAX_ENTRIES, likely


@pytest.mark.parametrize(
    ("question", "among_the_first", "how_many"),
    [
        ("hangs in all_reduce", "unused-parameter-deadlock", 5),
        ("deadlock in allreduce when logging on rank 0", "collective-in-a-branch", 3),
        ("stuck at the end of the epoch", "uneven-batches", 3),
        ("ranks drift apart", "missing-broadcast", 2),
        ("same batches on all ranks", "shared-shuffle-seed", 2),
        ("gradient accumulation is slow", "slow-accumulation", 1),
        ("learning rate diverges on eight gpus", "sum-without-divide", 2),
        ("pipeline hangs in send", "pipeline-send-send", 1),
        ("70B model out of memory", "fsdp-70b-over-80gb", 1),
        ("Expected to have finished reduction in the prior iteration", "unused-parameter-deadlock", 1),
        ("connection reset by peer", "shapes-differ", 2),
        ("validation accuracy differs between ranks", "batch-norm-buffers", 2),
        ("set_epoch", "set-epoch-forgotten", 1),
        ("در all_reduce قفل می‌شود", "unused-parameter-deadlock", 5),
        ("همه رتبه‌ها دسته‌های یکسان می‌خوانند", "shared-shuffle-seed", 2),
        ("پایپلاین قفل می‌شود", "pipeline-send-send", 2),
    ],
)
def test_the_entry_that_fits_is_among_the_first(question: str, among_the_first: str, how_many: int) -> None:
    found = [match.entry.id for match in likely(question)]
    assert among_the_first in found[:how_many], found
    assert len(found) <= MAX_ENTRIES


@pytest.mark.parametrize("question", ["my coffee is cold", "", "???", "the and of"])
def test_what_no_entry_is_about_fits_none(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert likely(question) == []
    assert main(["--symptom", question]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "--symptom 'hangs in all_reduce'" in said.err
    assert "python -m fixtures.doctor" in said.err


def test_the_answer_is_in_the_language_of_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--symptom", "پایپلاین قفل می‌شود"]) == 0
    assert "پایپلاین روی شبکه قفل می‌شود" in capsys.readouterr().out
    assert main(["--symptom", "pipeline deadlock"]) == 0
    assert "pytest --scenario=pipeline-send-send --explain" in capsys.readouterr().out


def test_without_a_question_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert "uneven-batches" in said
    assert "shared-shuffle-seed" in said
