"""A symptom in somebody's words leads to the entry that is about it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.faults.__main__ import main
from fixtures.faults.finding import MAX_ENTRIES, entries, likely
from fixtures.faults.vocabulary import SAID, SAME, SAYS_NOTHING

ROOT = Path(__file__).resolve().parents[2]
TYPED = [  # as people type them: the entry comes first or second
    ("NCCL watchdog timeout", "exception-on-one-rank"),
    ("exitcode -6", "shapes-differ"),
    ("exitcode: -6 SIGABRT", "shapes-differ"),
    ("training hangs when rank 0 saves a checkpoint", "collective-in-a-branch"),
    ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE)", "exception-on-one-rank"),
    ("loss is the same on every gpu", "shared-shuffle-seed"),
    ("accuracy changes with the number of gpus", "padded-evaluation"),
    ("lr reaches zero halfway through training", "scheduler-per-rank"),
    ("CUDA out of memory with FSDP on 8 gpus", "fsdp-70b-over-80gb"),
    (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one",
        "unused-parameter-deadlock",
    ),
    ("find_unused_parameters", "unused-parameter-deadlock"),
    ("hangs on the last batch of the epoch", "uneven-batches"),
    ("no_sync does not make it faster", "slow-accumulation"),
    ("weights differ between ranks after the first step", "missing-broadcast"),
    ("the new head has different weights on each rank", "parameters-replaced"),
    ("new_group hangs", "subgroup-on-some-ranks"),
    ("all_reduce gives a wrong result for a sliced tensor", "strided-tensor"),
    ("sum of integers after all_reduce is garbage", "dtypes-differ"),
    ("one rank hit NaN and skipped the batch, now it hangs", "skipped-batch"),
    ("model.module(x): gradients are not synced", "wrapper-bypassed"),
    ("validation loss differs between ranks, we use batchnorm", "batch-norm-buffers"),
    ("one gpu of my pipeline is busy and the others are idle", "unbalanced-stages"),
    ("pipeline deadlocks when there are fewer microbatches than stages", "fewer-microbatches-than-stages"),
    ("every epoch sees the data in the same order", "set-epoch-forgotten"),
    ("I have to divide the learning rate by 8 on 8 gpus", "sum-without-divide"),
    ("results change from run to run, dict order", "order-of-a-set"),
    ("loss with gradient accumulation does not match when sequences are padded", "mean-of-means"),
    ("send/recv deadlock between pipeline stages", "pipeline-send-send"),
    ("after unfreezing some layers the replicas diverge", "unfrozen-after-wrapping"),
    ("connection closed by peer", "exception-on-one-rank"),
    ("هنگ", "unused-parameter-deadlock"),
    ("گیر کرده", "unused-parameter-deadlock"),
    ("برنامه روی all_reduce هنگ کرده", "unused-parameter-deadlock"),
    ("وزن ها فرق دارند", "missing-broadcast"),
    ("وزن رنک‌ها با هم فرق می‌کند", "missing-broadcast"),
    ("لاس روی همه‌ی کارت‌ها یکیه", "shared-shuffle-seed"),
    ("آخر ایپاک گیر می کند", "uneven-batches"),
    ("رنک صفر موقع ذخیره چک‌پوینت گیر می‌کند", "collective-in-a-branch"),
    ("با FSDP باز هم حافظه کم می‌آید", "fsdp-70b-over-80gb"),
    ("دقت ولیدیشن با تعداد کارت ها عوض میشود", "padded-evaluation"),
    ("نرخ یادگیری زودتر از موعد صفر می‌شود", "scheduler-per-rank"),
    ("پایپ‌لاین هنگ می‌کند", "pipeline-send-send"),
    ("انباشت گرادیان سرعت را بیشتر نمی‌کند", "slow-accumulation"),
    ("یکی از رنک ها خطا می‌دهد و بقیه منتظر می‌مانند", "exception-on-one-rank"),
    ("نتیجهٔ ارزیابی رتبه‌ها با batchnorm فرق دارد", "batch-norm-buffers"),
    ("process exited with signal 6", "shapes-differ"),
    ("each GPU trains on identical data", "shared-shuffle-seed"),
    ("barrier never returns on rank 0", "collective-in-a-branch"),
    ("validation takes forever only on main process", "collective-in-a-branch"),
    ("learning rate warmup ends too fast on 8 gpus", "scheduler-per-rank"),
    ("frozen backbone then unfreeze, ranks out of sync", "unfrozen-after-wrapping"),
    ("gradient accumulation uses too much network bandwidth", "slow-accumulation"),
    ("dist.all_reduce on float16 and float32", "dtypes-differ"),
    ("one rank threw an exception and the rest timed out", "exception-on-one-rank"),
    ("model diverges only with more gpus", "sum-without-divide"),
    ("مدل با چند کارت واگرا می شود", "sum-without-divide"),
    ("گرادیان‌ها بین رنک‌ها همگام نیستند", "wrapper-bypassed"),
    ("رتبه‌ها داده تکراری می‌بینند", "shared-shuffle-seed"),
    ("یک مرحله از پایپلاین کند است", "unbalanced-stages"),
    ("Connection reset by peer", "shapes-differ"),
]


@pytest.mark.parametrize(("question", "entry"), TYPED)
def test_what_people_type_leads_to_the_entry_at_once(question: str, entry: str) -> None:
    found = [match.entry.id for match in likely(question)]
    assert entry in found[:2], found


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


@pytest.mark.parametrize("question", ["my coffee is cold", "???", "the and of", "رنک", "use out step"])
def test_what_no_entry_is_about_fits_none(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert likely(question) == []
    assert main(["--symptom", question]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "--symptom '" in said.err
    assert "python -m fixtures.doctor" in said.err


def test_a_question_of_nothing_is_told_what_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--symptom", " "]) == 2
    assert capsys.readouterr().err.startswith(
        "--symptom is empty. Say what is seen and where, e.g. --symptom 'hangs in"
    )


def test_the_vocabulary_is_of_entries_that_there_are_and_gives_a_word_one_meaning() -> None:
    assert {entry.id for entry in entries()} == SAID.keys()
    words = [word for line in SAME for word in line.split()]
    assert sorted(words) == sorted(set(words))
    assert not {line.split()[0] for line in SAME} & {word for line in SAYS_NOTHING for word in line.split()}


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


def test_list_into_a_pipe_that_is_closed_ends_without_a_word():
    read, write = os.pipe()
    os.close(read)  # as `| head` does it, before the first line
    with os.fdopen(write, "wb") as closed:
        command = [sys.executable, "-m", "fixtures.faults"]
        ended = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, cwd=ROOT, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")
