"""Of pages that an abort leaves, the terminal shows the reason and the line in the student's own file."""

from __future__ import annotations

from conformance.last_words import kept, telling

ABORT = """\
terminate called after throwing an instance of 'gloo::EnforceNotMet'
  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 20 vs 16.

Fatal Python error: Aborted

Thread 0x00007f35255ff6c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 982 in run

Thread 0x00007f3548676b80 (most recent call first):
  File "/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "/home/me/ddp.py", line 11 in finish
  File "<string>", line 1 in <module>

Extension modules: numpy._core._multiarray_umath, torch._C (total: 22)
"""


def test_reason_and_own_frame_of_an_abort_are_shown_and_nothing_else():
    assert telling(ABORT).splitlines() == [
        "[enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 20 vs 16.",
        "at /home/me/ddp.py:11 in finish",
    ]


def test_lines_that_the_rank_printed_come_with_it_from_both_ends():
    shown = telling("\n".join(f"step {i}" for i in range(20)) + "\n" + ABORT)
    assert [word in shown for word in ("step 0", "step 19", "step 9", "op.nbytes")] == [True, True, False, True]


def test_report_keeps_head_and_tail_without_the_list_of_modules():
    assert "Extension modules" not in kept(ABORT, 10_000)
    cut = kept(ABORT * 20, 500)
    assert cut.startswith("terminate called")
    assert "characters left out" in cut
    assert cut.rstrip().endswith("in <module>")
