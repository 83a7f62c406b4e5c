"""The forms that layers of an implementation may have, told apart by the parameters that they ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.world.pool import WorldPool
from tests.impls.tensor_parallel import programs

VARIANTS = Path(__file__).parents[2] / "variants"
COLUMN, ROW = "ColumnParallelLinear", "RowParallelLinear"


def impl(name: str) -> str:
    return name if name == "reference" else str(VARIANTS / f"{name}.py")


@pytest.mark.parametrize(
    ("name", "layer", "form", "weight"),
    [
        ("reference", COLUMN, "module", (6, 8)),
        ("reference", ROW, "module", (12, 4)),
        ("tp_megatron", COLUMN, "sizes", (6, 8)),
        ("tp_megatron", ROW, "sizes", (12, 4)),
        ("tp_functions", COLUMN, "function", (6, 8)),
        ("tp_functions", ROW, "function", (12, 4)),
        ("tp_tensors", COLUMN, "function", (8, 6)),
        ("tp_tensors", ROW, "function", (4, 12)),
        ("tp_tensors", "ParallelMLP", "function", (8, 6)),
        ("tp_halves", COLUMN, "module", (8, 6)),
        ("tp_halves", "VocabParallelEmbedding", "module", (7, 8)),
    ],
)
def test_each_form_gives_this_ranks_shards(
    worlds: WorldPool, name: str, layer: str, form: str, weight: tuple[int, ...]
) -> None:
    for value in worlds.world(2, impl=impl(name)).run(programs.form, layer).values:
        assert value["form"] == form
        assert tuple(value["shapes"][0]) == weight
        assert value["takes_whole"] is False


@pytest.mark.parametrize("option", ["sequence_parallel", "gather_output"])
def test_an_option_that_a_layer_does_not_ask_for_is_not_provided(worlds: WorldPool, option: str) -> None:
    values = worlds.world(2, impl=impl("tp_functions")).run(programs.without_option, option).values
    assert all(f"ColumnParallelLinear has no {option}" in text for text in values)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ("x, weight", "takes no bias"),
        ("tensor, linear", "asks for 'tensor', and no tensor is offered here"),
        ("x, weight, bias, strength", "asks for 'strength', which nothing is known to fill"),
    ],
)
def test_a_function_that_cannot_be_told_all_is_not_provided_and_says_why(
    worlds: WorldPool, tmp_path: Path, parameters: str, reason: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"def column_parallel_linear({parameters}):\n    return called\n")
    values = worlds.world(2, impl=str(file)).run(programs.refused_form, COLUMN).values
    assert all(reason in text for text in values)
