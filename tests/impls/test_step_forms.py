"""Pipelines written as classes: what is a step, what is half a pipeline, and who may be its caller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from impls import around
from impls.handover import NotProvided
from impls.loading import Implementation, load
from impls.pipelines import pipeline

STAGE = """
class PipelineStage:
    def __init__(self, layers, rank, world_size): self.layers = layers
    def forward(self, x): self.out = self.layers(x); return self.out
    def backward(self, grad): self.out.backward(grad)
"""
LOOP = "def run_gpipe({stage}, microbatches, targets): return [float(type(stage).__name__ == 'PipelineStage')]\n"
Load = Callable[[str], Implementation]


@pytest.fixture
def loaded(tmp_path: Path) -> Load:
    def load_source(source: str) -> Implementation:
        path = tmp_path / "mine.py"
        path.write_text(source)
        return load(str(path))

    return load_source


def losses(impl: Implementation, schedule: str) -> list[float]:
    driver = pipeline(impl, [nn.Linear(1, 1)], nn.functional.mse_loss, schedule=schedule, rank=0, world_size=1)
    return [float(loss) for loss in driver.step([torch.ones(1, 1)], [torch.ones(1, 1)])]


def test_class_of_one_microbatch_is_no_pipeline_and_told_what_would_make_it_one(loaded: Load) -> None:
    impl = loaded(STAGE)
    (told,) = impl.remarks()
    assert impl.get("train_step") is None
    assert "PipelineStage has forward(x) and backward(grad) for one microbatch, and no step of all" in told
    assert "Add a method step(self, microbatches, targets, loss_fn)" in told
    assert "PipelineStage(layers=stage, rank=rank, world_size=world_size)" in told


def test_function_that_is_annotated_with_the_class_is_given_an_object_of_it(loaded: Load) -> None:
    impl = loaded(STAGE + LOOP.format(stage="stage: 'PipelineStage'"))
    assert losses(impl, "gpipe") == [1.0]
    assert around.calls(impl)["train_step"] == ["its stage: PipelineStage(layers=stage, rank, world_size)"]


def test_function_that_says_nothing_of_its_stage_is_asked_and_not_guessed(loaded: Load) -> None:
    impl = loaded(STAGE + LOOP.format(stage="stage"))
    (told,) = impl.remarks()
    assert impl.get("train_step") is None
    assert "Annotate it, as in run_gpipe(stage: PipelineStage, ...)" in told
    assert losses(loaded(STAGE + LOOP.format(stage="stage") + "adapters = {'train_step': 'run_gpipe'}"), "gpipe") == [0]


def test_function_that_makes_the_object_itself_is_given_the_module(loaded: Load) -> None:
    impl = loaded(STAGE + "def run_gpipe(stage, xs, ys): return [float(PipelineStage(stage, 0, 1).layers is stage)]\n")
    assert losses(impl, "gpipe") == [1.0]


def test_class_with_a_method_for_each_schedule_is_asked_for_those(loaded: Load) -> None:
    impl = loaded(
        "class PipelineEngine:\n"
        "    def __init__(self, stage): pass\n"
        "    def train_gpipe(self, microbatches, targets): return [1]\n"
        "    def train_1f1b(self, microbatches, targets): return [2]\n"
    )
    assert (losses(impl, "gpipe"), losses(impl, "1f1b")) == ([1.0], [2.0])
    assert around.calls(impl)["train_step"] == ["a step of gpipe: train_gpipe()", "a step of 1f1b: train_1f1b()"]
    with pytest.raises(NotProvided, match="train_gpipe, train_1f1b of PipelineEngine, and nothing of the kind for zbv"):
        losses(impl, "zbv")


@pytest.mark.parametrize("name", ["worker", "train", "run_worker"])
def test_worker_of_a_script_is_not_taken_for_a_training_function(loaded: Load, name: str) -> None:
    impl = loaded(f"def {name}(rank, world_size): 1 / 0\ndef all_reduce(tensor): return tensor\n")
    assert f"{name}(rank, world_size) asks for no make_model and no inputs" in str(impl.reason("train"))


@pytest.mark.parametrize("signature", ["main(rank, world_size)", "run(rank, size)", "train_ddp(rank, world_size)"])
def test_entry_of_a_script_is_not_proposed_for_anything(loaded: Load, signature: str) -> None:
    impl = loaded(f"def {signature}: return 1 / 0\ndef all_reduce(tensor): return tensor\n")
    assert impl.proposals() == {}
    assert impl.get("train") is None
    assert impl.get("train_step") is None


def test_worker_that_takes_a_model_and_data_is_taken(loaded: Load) -> None:
    impl = loaded("def worker(rank, world_size, make_model, inputs, targets, steps=3): return make_model()\n")
    assert impl.get("train") is not None
