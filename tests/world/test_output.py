"""What ranks print is counted in full, kept in part, and never stands in the way of anything."""

from __future__ import annotations

from fixtures.world.member import Transcript
from fixtures.world.outcome import Ending
from fixtures.world.pool import WorldPool
from tests.world import programs


def test_output_of_every_kind_is_kept(worlds: WorldPool) -> None:
    for outcome in worlds.world(2).run(programs.print_everywhere):
        lines = {"from python", "from stderr", "from libc", "from the kernel\N{REPLACEMENT CHARACTER}"}
        assert set(outcome.output.splitlines()) == lines


def test_fifty_megabytes_are_counted_and_their_ends_are_kept(worlds: WorldPool) -> None:
    world = worlds.world(2)
    for outcome in world.run(programs.print_much, 50_000_000):
        assert outcome.output.startswith("first line\n")
        assert outcome.output.endswith("last line\n")
        assert 49_990_000 < outcome.output_bytes < 50_000_100
        assert len(outcome.output) < 100_000
    assert world.healthy


def test_printing_for_ever_ends_at_the_deadline(worlds: WorldPool) -> None:
    for outcome in worlds.world(2).run(programs.print_for_ever, deadline_s=0.5):
        assert outcome.ending is Ending.HUNG
        assert outcome.output_bytes > 0


def test_a_rank_that_prints_without_pause_hides_no_deadlock(worlds: WorldPool) -> None:
    outcomes = worlds.world(3).run(programs.lock_beside_a_printer, deadline_s=60.0)
    assert [outcome.ending for outcome in outcomes[:2]] == [Ending.HUNG, Ending.HUNG]
    assert [outcome.hang.deadlock for outcome in outcomes[:2]] == [True, True]


def test_a_closed_stdout_is_open_again_for_the_next_program(worlds: WorldPool) -> None:
    world = worlds.world(2)
    assert world.run(programs.close_stdout).all_returned
    for outcome in world.run(programs.print_everywhere):
        assert "from python" in outcome.output
        assert "from stderr" in outcome.output


def test_output_belongs_to_the_program_that_made_it(worlds: WorldPool) -> None:
    world = worlds.world(2)
    world.run(programs.print_everywhere)
    assert all((o.output, o.output_bytes) == ("", 0) for o in world.run(programs.nothing))


def test_a_transcript_says_how_much_it_left_out() -> None:
    transcript = Transcript()
    for _ in range(1000):
        transcript.add(b"x" * 1000)
    text = transcript.text()
    assert transcript.num_bytes == 1_000_000
    assert f"... {1_000_000 - 2 * (32 << 10):,} bytes left out ..." in text
