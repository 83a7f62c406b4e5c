from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures import weigh_programs
from fixtures.shapes import LLAMA_2_7B, LLAMA_3_70B, SMALL, Shape
from fixtures.weighing import Recipe, Weight
from fixtures.world.pool import WorldPool
from tests.witness import weighed

BF16 = torch.bfloat16
FEW = 200  # bytes: token ids, ranks of a device mesh
STEPS = 4  # bytes of Adam's step counter, one for each tensor


def weigh(
    worlds: WorldPool, impl: str | Path, shape: Shape, recipe: Recipe, world_size: int = 8, rank: int = 0
) -> Weight:
    world = worlds.world(1, impl=str(impl), bare=True, trace=False)
    asked = dataclasses.asdict(shape), dataclasses.asdict(recipe), world_size, rank
    (value,) = world.run(weighed.weigh, *asked).values
    return Weight(**value)


@pytest.mark.parametrize(
    ("shape", "num_parameters"), [(LLAMA_2_7B, 6_738_415_616), (LLAMA_3_70B, 70_553_706_496), (SMALL, 73_560)]
)
def test_shapes_have_the_parameters_of_the_published_models(shape: Shape, num_parameters: int) -> None:
    with torch.device("meta"):
        built = shape.build()
    assert sum(parameter.numel() for parameter in built.parameters()) == shape.num_parameters == num_parameters


def test_a_small_shape_computes() -> None:
    assert SMALL.build()(torch.arange(6).view(2, 3)).shape == (2, 3, SMALL.vocabulary)


def test_torchs_fully_shard_of_70b_holds_an_eighth_of_16_bytes_per_parameter(worlds: WorldPool) -> None:
    shape = LLAMA_3_70B.with_layers(2)
    weight = weigh(worlds, "torch", shape, Recipe(stage="3"))
    assert (weight.parameters, weight.gradients) == (shape.num_parameters // 2, shape.num_parameters // 2)
    assert weight.optimizer == shape.num_parameters + STEPS * (3 + 9 * 2)
    assert weight.other < FEW


def test_weighing_takes_no_memory_to_speak_of(worlds: WorldPool) -> None:
    weigh(worlds, "torch", LLAMA_3_70B.with_layers(2), Recipe(stage="3"))
    world = worlds.world(1, impl="torch", bare=True, trace=False)
    assert world.run(weighed.peak_kilobytes).values[0] < 1_000_000


RECIPES = {
    "plain": ("torch", Recipe(stage="plain")),
    "ddp": ("reference", Recipe(stage="ddp")),
    "mixed": ("reference", Recipe(stage="mixed", dtype=BF16)),
    "mixed without master": ("reference", Recipe(stage="mixed", dtype=BF16, master=False)),
    "zero1 of torch": ("torch", Recipe(stage="1")),
    "fsdp of torch": ("torch", Recipe(stage="3", optimizer="Adam")),
    "zero1": ("reference", Recipe(stage="1", dtype=BF16)),
    "zero2": ("reference", Recipe(stage="2", dtype=BF16)),
    "fsdp": ("reference", Recipe(stage="3", dtype=BF16, mixed=True)),
    "fsdp without master": ("reference", Recipe(stage="3", dtype=BF16, mixed=True, master=False)),
}


@pytest.mark.parametrize(("impl", "recipe"), RECIPES.values(), ids=RECIPES)
def test_fake_tensors_weigh_to_the_byte_what_real_ones_do_on_real_ranks(
    worlds: WorldPool, impl: str, recipe: Recipe
) -> None:
    real = worlds.world(3, impl=impl).run(
        weigh_programs.on_ranks, dataclasses.asdict(SMALL), dataclasses.asdict(recipe)
    )
    assert real.all_returned, real.describe()
    for rank, value in enumerate(real.values):
        fake, held = weigh(worlds, impl, SMALL, recipe, world_size=3, rank=rank), Weight(**value)
        assert dataclasses.replace(fake, other=0) == dataclasses.replace(held, other=0)
        assert fake.other == pytest.approx(held.other, abs=FEW)


def test_memory_allocated_for_real_and_decisions_by_values_are_told(worlds: WorldPool, tmp_path: Path) -> None:
    told = {}
    for name, line in {"greedy": "torch.UntypedStorage(64 << 30)", "asking": "bool(module[0].weight.sum())"}.items():
        path = tmp_path / f"{name}.py"
        path.write_text(f"import torch\n\ndef fully_shard(module):\n    {line}\n    return module\n")
        world = worlds.world(1, impl=str(path), bare=True, trace=False)
        asked: tuple[dict[str, Any], ...] = (dataclasses.asdict(SMALL), dataclasses.asdict(Recipe(stage="3")))
        (outcome,) = world.run(weighed.weigh, *asked, 8)
        assert outcome.raised is not None
        assert outcome.raised.type.endswith("CannotBeWeighed")
        told[name] = outcome.raised.text
    assert "allocate" in told["greedy"]
    assert "DataDependentOutputException" in told["asking"]


def test_what_is_not_provided_is_no_matter_of_weighing(worlds: WorldPool) -> None:
    world = worlds.world(1, impl="torch", bare=True, trace=False)
    (outcome,) = world.run(weighed.weigh, dataclasses.asdict(SMALL), dataclasses.asdict(Recipe(stage="2")), 8)
    assert outcome.raised is not None
    assert outcome.raised.type.endswith("NotProvided")


def test_ranks_that_have_a_group_are_not_for_weighing(worlds: WorldPool) -> None:
    world = worlds.world(1, impl="torch")
    (outcome,) = world.run(weighed.weigh, dataclasses.asdict(SMALL), dataclasses.asdict(Recipe(stage="3")), 8)
    assert outcome.raised is not None
    assert "bare=True" in outcome.raised.text


def test_checkpointing_changes_activations_and_no_states(worlds: WorldPool) -> None:
    world = worlds.world(1, bare=True, trace=False)
    shape = LLAMA_3_70B.with_layers(2)
    (values,) = world.run(weigh_programs.activations, dataclasses.asdict(shape), 1024).values
    kept, recomputed = weigh_programs.read_activations(values)
    assert kept.states == recomputed.states
    layer_input_bytes = 1024 * shape.width * 2
    assert recomputed.activations < 2 * (shape.num_layers + 1) * layer_input_bytes
    assert kept.activations > 20 * shape.num_layers * layer_input_bytes
