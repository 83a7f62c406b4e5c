"""Lesson 48: its command on the implementation, the file that it writes, and what it does when nobody says otherwise.

The command runs in a folder of its own. What the ranks did is read from the rows and parameters that the lesson's model
met, from the group that its ranks were in, and from the trace.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest
import torch

from conformance.checks import Judge, Subject, claim
from conformance.expect import Comparison
from conformance.verdict import Witness
from fixtures.world.outcome import Outcomes
from lessons import ddp
from lessons.ddp_observed import MAX_SPREAD, Seen, seen_of
from lessons.ddp_worker import PROVIDERS, Settings, work

SCHEMA = Path(ddp.__file__).with_name("ddp-demo.schema.json")
CONTROL = 20 * MAX_SPREAD  # what ranks on their own are apart by, at least: else a small spread says nothing
OLD = '{"by": "an earlier run"}'
AS_TAUGHT: Mapping[str, Any] = {"world_size": 2, "backend": "gloo", "num_steps": 6, "batch_size": 8}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How the command ended: its status, what it printed, and the ranks that trained."""

    status: int
    text: str
    settings: Settings | None
    outcomes: Outcomes | None

    @property
    def seen(self) -> Seen:
        """What these ranks did."""
        assert self.outcomes is not None
        assert self.settings is not None
        return seen_of(self.outcomes.values, self.settings)


def _command(subject: Subject, folder: Path, *arguments: str) -> Command:
    """``python -m lessons ddp`` with these arguments in this folder, on the ranks of the subject."""
    parser = argparse.ArgumentParser()
    ddp.add_arguments(parser)
    printed: list[str] = []
    trained: list[tuple[Settings, Outcomes]] = []

    def on_ranks(program: Callable[..., Any], world_size: int, *args: Any, **kwargs: Any) -> Outcomes:
        outcomes = subject.run(program, world_size, *args, **kwargs)
        if program is work:
            trained.append((Settings(**args[0]), outcomes))
        return outcomes

    try:
        options = parser.parse_args([*arguments, f"--impl={subject.description.spec}"])
        status = ddp.perform(options, on_ranks, folder, printed.append)
    except ddp.Unusable as error:
        status, printed = 2, [str(error)]
    settings, outcomes = trained[0] if trained else (None, None)
    return Command(status=status, text="\n".join(printed), settings=settings, outcomes=outcomes)


def _well(judge: Judge, command: Command) -> Seen:
    """What the ranks did; the check ends when the command says that something is wrong."""
    if command.status != 0:
        last = command.text.strip().rpartition("\n\n")[2]
        judge.violated(
            f"the lesson ends with status {command.status}: {last}",
            expected="status 0",
            observed=f"status {command.status}",
            outcomes=command.outcomes,
        )
    return command.seen


# -- the file ----------------------------------------------------------------------------------------------------------


@claim("lessons.48", provides=[PROVIDERS])
def test_the_command_trains_and_writes_its_file(subject: Subject, judge: Judge, tmp_path: Path) -> None:
    seen = _well(judge, _command(subject, tmp_path))
    path = tmp_path / "outputs" / "ddp-demo.json"
    assert path.is_file(), "status 0 and no file"
    found = json.loads(path.read_text())
    jsonschema.validate(found, json.loads(SCHEMA.read_text()))
    assert not list(path.parent.glob(f".{path.name}*")), "the file was not put there at once"
    wanted = {
        **{name: getattr(seen.settings, name) for name in AS_TAUGHT},
        "parameter_sums": [float(rank.points[-1].double().sum()) for rank in seen.ranks],
        "losses": seen.losses,
    }
    judge.expect(
        {name: found[name] for name in wanted},
        wanted,
        message="the file beside what the model met on the ranks",
        examples=len(found["losses"]),
    )
    judge.at_most(found["gradient_difference"], found["gradient_bound"], message="the gradient against one process")


@claim("lessons.48.world-size", provides=[PROVIDERS])
def test_four_ranks_stay_within_a_thousandth(subject: Subject, judge: Judge, tmp_path: Path) -> None:
    command = _command(subject, tmp_path, "--world-size=4")
    seen = command.seen if command.outcomes is not None else _well(judge, command)
    judge.expect(
        [rank.group_size for rank in seen.ranks],
        [4] * 4,
        message="ranks in the group of each rank",
        outcomes=command.outcomes,
    )
    assert seen.spread_without_all_reduce > CONTROL, "ranks on their own stay together as well"
    apart = max(seen.spread, seen.largest_parameter_difference)
    judge.that(
        Comparison(
            matches=apart < MAX_SPREAD,
            expected=f"below {MAX_SPREAD:g}",
            observed=f"{apart:.3g}",
            message=f"without the all-reduce {seen.spread_without_all_reduce:.3g}",
        ),
        message="spread of the parameters of four ranks after six steps",
        outcomes=command.outcomes,
    )
    _well(judge, command)


@claim("lessons.48.no-write", provides=[PROVIDERS])
@pytest.mark.parametrize("old", [None, OLD], ids=["no file", "an older file"])
def test_no_write_leaves_the_file_alone(subject: Subject, judge: Judge, tmp_path: Path, old: str | None) -> None:
    path = tmp_path / "outputs" / "ddp-demo.json"
    if old is not None:
        path.parent.mkdir()
        path.write_text(old)
    seen = _well(judge, _command(subject, tmp_path, "--no-write"))
    assert len(seen.losses) == seen.settings.num_steps
    judge.expect(
        path.read_text() if path.exists() else None,
        old,
        message="outputs/ddp-demo.json after the command with --no-write",
    )


# -- what it does when nobody says otherwise ---------------------------------------------------------------------------


def _of_training(outcomes: Outcomes) -> list[list[int]]:
    """The ranks of the groups in which each rank's operations ran: what the trace says of who took part."""
    return [sorted({len(operation.ranks) for operation in outcome.operations}) for outcome in outcomes]


def _without(option: str, subject: Subject, judge: Judge, folder: Path, **others: Any) -> Command:
    """The command with all options but one, as taught or as given; the check ends when nothing was trained."""
    given = {name: value for name, value in {**AS_TAUGHT, **others}.items() if name != option}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    command = _command(subject, folder, "--no-write", *arguments)
    if command.outcomes is None:
        _well(judge, command)
    return command


@claim("defaults.world-size", provides=[PROVIDERS])
def test_two_ranks_train_unless_told_otherwise(
    subject: Subject, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = _without("world_size", subject, judge, tmp_path)
    assert command.outcomes is not None
    judge.expect(
        {"ranks": len(command.outcomes), "of a group": [rank.group_size for rank in command.seen.ranks]},
        {"ranks": 2, "of a group": [2, 2]},
        message="ranks that trained, and the size of each one's group",
        outcomes=command.outcomes,
    )
    judge.expect(
        _of_training(command.outcomes),
        [[2], [2]],
        witness=Witness.TRACE,
        message="ranks in the groups of all operations of each rank",
        outcomes=command.outcomes,
    )


@claim("defaults.backend", provides=[PROVIDERS])
def test_the_group_runs_on_gloo_unless_told_otherwise(subject: Subject, judge: Judge, tmp_path: Path) -> None:
    command = _without("backend", subject, judge, tmp_path)
    judge.expect(
        [rank.backend for rank in command.seen.ranks],
        ["gloo", "gloo"],
        message="backend of the group in which each rank trained",
        outcomes=command.outcomes,
    )
    if torch.cuda.device_count() >= AS_TAUGHT["world_size"]:
        return
    refused = _command(subject, tmp_path, "--no-write", "--backend=nccl")
    assert (refused.status, refused.outcomes) == (2, None)
    assert "CUDA devices" in refused.text
    judge.holds(
        expected="refused with a sentence, before a process starts",
        observed=refused.text,
        witness=Witness.VALUE,
        message=f"--backend nccl on {torch.cuda.device_count()} CUDA devices",
    )


@claim("defaults.num-steps", provides=[PROVIDERS])
def test_six_steps_are_made_unless_told_otherwise(subject: Subject, judge: Judge, tmp_path: Path) -> None:
    command = _without("num_steps", subject, judge, tmp_path)
    judge.expect(
        {"steps": [rank.num_steps for rank in command.seen.ranks], "losses": len(command.seen.losses)},
        {"steps": [6, 6], "losses": 6},
        message="times that each rank's parameters moved, and losses",
        outcomes=command.outcomes,
    )


@claim("defaults.batch-size", provides=[PROVIDERS])
@pytest.mark.parametrize("world_size", [2, 3])
def test_each_rank_reads_eight_rows_a_step_unless_told_otherwise(
    subject: Subject, judge: Judge, tmp_path: Path, world_size: int
) -> None:
    command = _without("batch_size", subject, judge, tmp_path, world_size=world_size)
    sizes = {
        f"rank {number}": sorted({len(rows) for rows in rank.rows})
        for number, rank in enumerate(command.seen.ranks)
        if rank.num_steps  # how many steps there are is another claim
    }
    if not sizes:
        judge.violated("no rank made a step", expected="8 rows a step", outcomes=command.outcomes)
    judge.expect(
        sizes,
        {rank: [AS_TAUGHT["batch_size"]] for rank in sizes},
        message="rows that reached the model of each rank in a step",
        examples=sum(rank.num_steps for rank in command.seen.ranks),
        outcomes=command.outcomes,
    )
