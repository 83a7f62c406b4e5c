"""The driver of pipelines: which form is found, what it is handed, and what its result is taken for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from impls.handover import NotProvided
from impls.loading import load
from impls.normalise import UnusableResult
from impls.pipelines import Driver, losses_of, pipeline, refusals

BATCHES = [torch.full((2, 1), float(number)) for number in range(3)]


def driver(folder: Path, source: str, schedule: str = "1f1b", **options: Any) -> Driver:
    file = folder / "handed_in.py"
    file.write_text(f"import torch\nfrom torch import nn\n{source}")
    stage = nn.Linear(1, 1)
    return pipeline(
        load(str(file)), [stage], nn.functional.mse_loss, schedule=schedule, rank=0, world_size=1, **options
    )


def step(folder: Path, source: str, schedule: str = "1f1b") -> list[float]:
    return [float(loss) for loss in driver(folder, source, schedule).step(BATCHES, BATCHES)]


@pytest.mark.parametrize(
    ("source", "stands_in"),
    [
        ("def train_step(stage, microbatches, targets, loss_fn): ...; return []", True),
        ("def train_step(stage, microbatches, targets, loss_fn, schedule): ...; return []", False),
        ("def train_gpipe(stage, microbatches, targets, loss_fn): ...; return []", False),
    ],
    ids=["one order", "any schedule", "gpipe by name"],
)
def test_what_runs_one_order_is_examined_once(tmp_path: Path, source: str, stands_in: bool) -> None:
    assert bool(driver(tmp_path, source, "gpipe").stands_in_for("gpipe")) is stands_in
    assert not driver(tmp_path, source.replace("train_gpipe", "train_1f1b")).stands_in_for("1f1b")


@pytest.mark.parametrize(
    "source",
    [
        "def train_step(stage, microbatches, targets, loss_fn, schedule): return [len(microbatches), len(targets)]",
        "def pipeline_step(model, xs, ys, criterion): return [len(xs), len(ys)]",
        "def train_1f1b(stages, inputs, labels): return [len(inputs), len(labels) * len(stages)]",
        "def train_step(net, microbatches, targets, num_microbatches): return [num_microbatches, len(targets)]",
        "def run_pipeline(stage, chunks, targets): return [len(chunks), len(targets)]",
        "def train_step(stage, microbatches, target, loss_fn): return [len(microbatches), len(target)]",
        "class Pipeline:\n    def __init__(self, module, rank, world_size, loss_fn): pass\n"
        "    def train_batch(self, microbatches, targets): return [len(microbatches), len(targets)]",
        "class PipelineEngine:\n    def __init__(self, stage, n_micro, schedule='gpipe'): self.n = n_micro\n"
        "    def step(self, micro_batches, y, loss_fn): return [self.n, len(y)]",
    ],
    ids=["contract", "synonyms", "one schedule", "with a count", "chunks", "target", "class", "class with a count"],
)
def test_a_list_of_microbatches_is_handed_over(tmp_path: Path, source: str) -> None:
    assert step(tmp_path, source) == [3.0, 3.0]


@pytest.mark.parametrize(
    "source",
    [
        "def train_step(stage, x, y, num_microbatches): return [x.shape[0], y.shape[0], num_microbatches]",
        "def train_step(stage, batch, targets, chunks): return [batch.shape[0], targets.shape[0], chunks]",
        "class PipelineParallel:\n    def __init__(self, module, num_microbatches): self.n = num_microbatches\n"
        "    def train_step(self, inputs, targets): return [inputs.shape[0], targets.shape[0], self.n]",
    ],
    ids=["count", "chunks", "class"],
)
def test_a_whole_batch_is_handed_over_beside_its_number_of_parts(tmp_path: Path, source: str) -> None:
    assert step(tmp_path, source) == [6.0, 6.0, 3.0]


def test_a_whole_batch_cannot_have_parts_of_several_sizes(tmp_path: Path) -> None:
    handed_in = driver(tmp_path, "def train_step(stage, x, y, num_microbatches): return []")
    with pytest.raises(NotProvided, match="several sizes"):
        handed_in.step([torch.ones(1, 1), torch.ones(2, 1)], [torch.ones(1, 1), torch.ones(2, 1)])


@pytest.mark.parametrize(
    ("source", "schedule", "name"),
    [
        ("def train_step(stage, microbatches, targets, schedule): return []", "zb_h1", "zb_h1"),
        ("def train_gpipe(stage, microbatches, targets): return []", "gpipe", "gpipe"),
        ("def train_step(stage, microbatches, targets): return []", "gpipe", ""),
    ],
    ids=["asked for", "its own name", "unknown"],
)
def test_the_schedule_that_runs_has_a_name_where_it_is_known(
    tmp_path: Path, source: str, schedule: str, name: str
) -> None:
    assert driver(tmp_path, source, schedule).schedule_name == name


@pytest.mark.parametrize(
    ("source", "schedule", "reason"),
    [
        ("def train_step(stage, microbatches, targets): return []", "zb_h1", "takes no schedule"),
        ("def train_gpipe(stage, microbatches, targets): return []", "1f1b", "nothing of the kind for 1f1b"),
        ("class Pipeline:\n    def __init__(self, stage): pass", "1f1b", "has no method train_step, step"),
        ("class Pipeline(nn.Module):\n    def __init__(self, stage): pass", "1f1b", "has no method train_step, step"),
        ("def train_step(stage, microbatches, targets, schedule): raise NotImplementedError", "1f1b", "still empty"),
    ],
    ids=["no schedule", "another one", "no method", "a module's own", "stub"],
)
def test_what_is_not_offered_is_not_provided(tmp_path: Path, source: str, schedule: str, reason: str) -> None:
    with pytest.raises(NotProvided, match=reason):
        driver(tmp_path, source, schedule)


def test_a_function_for_each_schedule_is_found_by_the_schedule(tmp_path: Path) -> None:
    source = "def train_gpipe(stage, microbatches, targets): return 1\ndef train_1f1b(stage, xs, ys): return 2"
    assert step(tmp_path, source, "gpipe") == [1.0]
    assert step(tmp_path, source, "1f1b") == [2.0]


def test_tied_weights_are_for_those_who_ask_for_them(tmp_path: Path) -> None:
    with pytest.raises(NotProvided, match="takes no tied"):
        driver(tmp_path, "def train_step(stage, microbatches, targets, schedule): return []", tied={})


@pytest.mark.parametrize(
    ("result", "losses"),
    [
        (None, []),
        ([torch.tensor(1.0), torch.tensor([2.0])], [1.0, 2.0]),
        (torch.tensor([1.0, 2.0]), [1.0, 2.0]),
        (torch.tensor(1.5), [1.5]),
        ([1.0, 2], [1.0, 2.0]),
        (1.5, [1.5]),
        ({"losses": [1.0, 2.0]}, [1.0, 2.0]),
        ({"loss": 1.5}, [1.5]),
        ({}, []),
    ],
    ids=["none", "list", "stacked", "mean", "numbers", "number", "dict", "dict with a mean", "empty dict"],
)
def test_losses_in_any_form(result: Any, losses: list[float]) -> None:
    assert [float(loss) for loss in losses_of(result)] == losses


def test_what_is_no_loss_is_refused() -> None:
    with pytest.raises(UnusableResult, match="train_step returned a str"):
        losses_of("done", "train_step")


def test_a_value_error_that_is_raised_on_purpose_is_a_refusal() -> None:
    with pytest.raises(NotProvided, match="M = 3 is refused: too few"), refusals("M = 3"):
        raise ValueError("too few")
    with pytest.raises(ValueError, match="invalid literal"), refusals("M = 3"):
        int("x")
    with pytest.raises(ValueError, match="optimizer got an empty"), refusals("M = 3"):
        torch.optim.SGD([], lr=1.0)
