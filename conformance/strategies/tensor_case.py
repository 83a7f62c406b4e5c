"""One case of tensor parallelism, and what the unsharded module makes of it in one process: the yardstick."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fixtures import blocks
from fixtures.blocks import Size
from fixtures.tolerances import MANTISSA_BITS, gamma, unit_roundoff

SEED = 5
LEARNING_RATE = 2.0**-6
SAFETY = 16  # times what one draw of relative errors in all parameters and inputs changes
ROUNDINGS = 64  # in a row, on the way through the layers: more than the longest sum of any case
BY_FAR = 50  # how many times its bound a result must measure, or agreement within it says nothing


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is computed. `way` is how an implementation provides it, see `WAYS`."""

    way: str
    width: int = 10
    inner: int = 24
    num_heads: int = 1
    bias: bool = True
    shape: tuple[int, ...] = (2, 4)  # of the input, its width left out; batch and sequence
    exact: bool = True
    uses: int = 1  # how often the layer is called in one forward pass, on its own output
    passes: int = 1  # backward passes that add up
    steps: int = 0  # of SGD, after which everything is computed once more
    frozen: str = ""  # a parameter that does not learn
    frozen_after: bool = False  # frozen as the user of a built layer does it
    sequence_parallel: bool = False
    gather_output: bool = False
    input_is_parallel: bool = True
    halves: bool = False  # in two groups, each of half of the ranks
    needs_input_gradient: bool = True

    @property
    def kind(self) -> str:
        """The kind of the unsharded module."""
        return WAYS[self.way][0]

    @property
    def size(self) -> Size:
        """The unsharded module's size."""
        return Size(kind=self.kind, width=self.width, inner=self.inner, num_heads=self.num_heads, bias=self.bias)

    def fields(self) -> dict[str, Any]:
        """For a program on ranks."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Case:
        """The case of `fields`."""
        return cls(**(dict(fields) | {"shape": tuple(fields["shape"])}))

    def build(self) -> nn.Module:
        """The unsharded module."""
        return blocks.build(self.size, SEED, exact=self.exact)

    def inputs(self, number: int, half: int = 0) -> Tensor:
        """The whole input of a pass."""
        return blocks.rows(self.size, self.shape, 100 + 10 * number + half, exact=self.exact)

    def targets(self, number: int, half: int = 0) -> Tensor:
        """What the output of a pass is multiplied by, the gradient of the loss: whole."""
        generator = torch.Generator().manual_seed(200 + 10 * number + half)
        width = self.inner if self.kind == "column" else self.width
        return blocks.numbers((*self.shape, width), generator, exact=self.exact)


# How a module may be provided: way -> the kind of it, and the names of the contract.
WAYS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "column": ("column", ("ColumnParallelLinear",)),
    "row": ("row", ("RowParallelLinear",)),
    "embedding": ("embedding", ("VocabParallelEmbedding",)),
    "mlp": ("mlp", ("ParallelMLP",)),
    "attention": ("attention", ("ParallelAttention",)),
    "pair": ("mlp", ("ColumnParallelLinear", "RowParallelLinear")),
    "heads": ("attention", ("ColumnParallelLinear", "RowParallelLinear")),
    "whole-mlp": ("mlp", ("tensor_parallel",)),
    "whole-attention": ("attention", ("tensor_parallel",)),
    "block": ("block", ("tensor_parallel",)),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What one process has after a case, in double precision: per pass, and per whole parameter."""

    outputs: list[Tensor]
    input_gradients: list[Tensor]
    start: dict[str, Tensor]
    parameters: dict[str, Tensor]
    gradients: dict[str, Tensor]

    def tensors(self) -> dict[str, Tensor]:
        """All of it by name."""
        found = {f"output {i}": value for i, value in enumerate(self.outputs)}
        found |= {f"input gradient {i}": value for i, value in enumerate(self.input_gradients)}
        found |= {f"gradient of {name}": value for name, value in self.gradients.items()}
        return found | {f"parameter {name}": value for name, value in self.parameters.items()}


def compute(
    case: Case, half: int = 0, *, activation: Callable[[Tensor], Tensor] | None = None, nudge: float = 0.0
) -> Yardstick:
    """Run a case in one process. `nudge` is the size of relative errors that are put on all parameters and inputs."""
    module = case.build().double()
    if activation is not None:
        module.__dict__["activation"] = activation
        module._modules.pop("activation", None)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        start = {name: p.clone() for name, p in module.named_parameters()}
        for parameter in module.parameters():
            parameter.mul_(1 + nudge * _signs(parameter.shape, generator))
    _freeze(module, case.frozen)
    outputs, inputs = [], []
    for number in range(case.steps + 1):
        if number:
            _descend(module)
        for index in range(case.passes):
            x = case.inputs(number * case.passes + index, half)
            if x.is_floating_point():
                x = (x.double() * (1 + nudge * _signs(x.shape, generator))).requires_grad_(case.needs_input_gradient)
            y = x
            for _ in range(case.uses):
                y = module(y)
            (y * case.targets(number * case.passes + index, half)).sum().backward()  # type: ignore[no-untyped-call]
            outputs.append(y.detach())
            inputs.append(x)
    return Yardstick(
        outputs=outputs,
        input_gradients=[x.grad for x in inputs if x.grad is not None],
        start=start,
        parameters={name: p.detach() for name, p in module.named_parameters()},
        gradients={name: p.grad for name, p in module.named_parameters() if p.grad is not None},
    )


def bounds(case: Case, exact: Yardstick, half: int = 0, *, bits: bool, **how: Any) -> dict[str, float]:
    """How far each tensor may be from the yardstick: nothing with `bits`, all numbers exact; else rounding.

    The errors of a chain of sums are those of relative errors gamma(k, u) in its operands (Higham 2002, section 3.5).
    So such errors are put on all of them, and what they change is taken times `SAFETY`.
    """
    found = exact.tensors()
    if bits:
        assert not case.steps, "a step of a learning rate below 1 leaves the integers"
        limit = 2.0 ** MANTISSA_BITS[torch.float32]
        assert all(float(value.abs().max()) < limit / 16 for value in found.values()), "too large to be exact"
        return dict.fromkeys(found, 0.0)
    nudge = gamma(ROUNDINGS, unit_roundoff(torch.float32))
    moved = compute(case, half, nudge=nudge, **how).tensors()
    result = {}
    for name, value in found.items():
        change = float((moved[name] - value).abs().max())
        result[name] = SAFETY * max(change, nudge * float(value.abs().max()))
    for name in [name for name in result if name.startswith("gradient of") and name.endswith("k.bias")]:
        # A key's bias shifts all scores of a query alike, which a softmax does not see: zero, but for rounding.
        result[name] = result[name.replace("bias", "weight")]
    lost = [name for name, value in found.items() if _is_lost(name, value, result[name])]
    assert not lost, f"{lost} of {case} are lost in rounding"
    return result


def _is_lost(name: str, value: Tensor, bound: float) -> bool:
    return not name.endswith("k.bias") and float(value.abs().max()) < BY_FAR * bound


def _freeze(module: nn.Module, name: str) -> None:
    if name:
        module.get_parameter(name).requires_grad_(False)


def _descend(module: nn.Module) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.grad is not None:
                parameter.sub_(LEARNING_RATE * parameter.grad)
                parameter.grad = None


def _signs(shape: torch.Size, generator: torch.Generator) -> Tensor:
    return torch.randint(2, tuple(shape), generator=generator).double() * 2 - 1
