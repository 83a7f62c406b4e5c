"""The reference's backward in two halves against autograd's whole one, on stages of every sort."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from impls.reference.pipeline.split import backward, backward_input, edges

WIDTH = 6
ROWS = 5


class Stage(nn.Module):
    """`run` with some layers at hand."""

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self.a = nn.Linear(WIDTH, WIDTH)
        self.b = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.gain = nn.Parameter(torch.randn(WIDTH))
        self.table = nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.run = run

    def forward(self, *inputs: Tensor) -> Any:
        return self.run(self, *inputs)


class Product(torch.autograd.Function):
    """A function of one's own: its node in the graph is a Python object."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        return gradient * weight, (gradient * x).sum(0)


def _in_place(stage: Any, x: Tensor) -> Tensor:
    hidden = stage.a(x).relu_() * 2
    hidden[:, :2] += stage.gain[:2]
    return stage.b(hidden)


def _embedding_and_head(stage: Any, x: Tensor) -> Tensor:
    """One table as an embedding (twice), as a head, and straight: its four gradients come by different ways."""
    numbers = x.detach().abs().long().sum(1) % WIDTH
    hidden = x + functional.embedding(numbers, stage.table) * functional.embedding(numbers.flip(0), stage.table)
    return functional.linear(stage.a(hidden) @ stage.table, stage.table)


STAGES: dict[str, Callable[..., Any]] = {
    "layers": lambda s, x: s.b(functional.gelu(s.norm(s.a(x)))),
    "one layer twice": lambda s, x: s.a(functional.relu(s.a(x))),
    "one layer five times": lambda s, x: s.a(s.a(s.a(s.b(functional.relu(s.a(s.a(x))))))) * s.gain,
    "one weight by different ways": _embedding_and_head,
    "a weight made of others, twice": lambda s, x: (x @ (s.table * s.gain)) @ (s.table * s.gain).t() * s.gain,
    "one made weight used twice": lambda s, x: (lambda w: s.a(x @ w) @ w)(torch.tanh(s.table) * s.gain),
    "branches": lambda s, x: s.a(x) * torch.sigmoid(s.b(x)) + x * s.gain,
    "a part below which there is no input": lambda s, x: x * (s.table @ s.gain) + s.b(s.table).sum(0),
    "two outputs": lambda s, x: (s.a(x), s.b(functional.relu(s.a(x)))),
    "an output without input": lambda s, x: (s.a(x), s.table @ s.gain, s.gain),
    "an output used on the way": lambda s, x: (lambda y: (y, s.b(y), (y * 2).relu()))(s.a(x)),
    "an output that is used by a weight's path": lambda s, x: (lambda w: (x @ w, w))(s.table * s.gain),
    "an output without gradient": lambda s, x: (s.a(x), (x > 0), x.detach().sum(0)),
    "the input as an output": lambda s, x: (x, s.a(x)),
    "nothing but the input": lambda s, x: x,
    "no weights": lambda s, x: functional.gelu(x),
    "two inputs": lambda s, x, y: s.a(x) * s.norm(y),
    "two inputs, one unused": lambda s, x, y: s.a(x),
    "pieces": lambda s, x: torch.cat([part * s.gain[:2] for part in s.a(x).split(2, dim=1)[:2]], 1),
    "in place": _in_place,
    "a function of one's own": lambda s, x: Product.apply(s.a(x), Product.apply(s.table, s.gain).sum(0)),
    "its last node a Python object": lambda s, x: Product.apply(functional.relu(s.a(x)), s.gain),
    "recomputed": lambda s, x: checkpoint(lambda y: s.b(functional.relu(s.a(y))), s.norm(x), use_reentrant=False),
    "frozen": lambda s, x: s.b(functional.linear(x, s.a.weight.detach())) * s.gain.detach(),
    "a complex one": lambda s, x: torch.view_as_real(torch.fft.fft(s.a(x)) * torch.complex(s.gain, s.gain)),
    "sixteen bits inside": lambda s, x: functional.relu(x.bfloat16() @ s.table.bfloat16()).float() @ s.table,
}
stages = pytest.mark.parametrize("name", list(STAGES))


def _tensors(found: Any) -> list[Tensor]:
    return list(found) if isinstance(found, tuple) else [found]


def _data(num_inputs: int, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(ROWS, WIDTH, generator=generator).requires_grad_() for _ in range(num_inputs)]


def _gradients(outputs: Sequence[Tensor], seed: int = 7) -> list[Tensor | None]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(output.shape, generator=generator) if output.requires_grad else None for output in outputs]


def _equal(ours: Sequence[Tensor | None], theirs: Sequence[Tensor | None]) -> bool:
    pairs = list(zip(ours, theirs, strict=True))
    return all((a is None) == (b is None) for a, b in pairs) and all(
        torch.equal(a, b) for a, b in pairs if a is not None
    )  # type: ignore[arg-type]


def _autograd(module: nn.Module, inputs: Sequence[Tensor], leave_out: int | None = None) -> list[Tensor | None]:
    """What torch itself adds to weights and inputs; gradients of the inputs."""
    outputs = _tensors(module(*inputs))
    pairs = [(o, g) for i, (o, g) in enumerate(zip(outputs, _gradients(outputs), strict=True)) if i != leave_out]
    used = [(output, gradient) for output, gradient in pairs if gradient is not None]
    if used:
        torch.autograd.backward([output for output, _ in used], [gradient for _, gradient in used])
    return [tensor.grad for tensor in inputs]


def _module(name: str) -> nn.Module:
    torch.manual_seed(3)
    return Stage(STAGES[name])


def _weights(module: nn.Module) -> list[Tensor | None]:
    return [parameter.grad for parameter in module.parameters()]


def _num_inputs(name: str) -> int:
    return 2 if name.startswith("two inputs") else 1


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leave_out", [None, 0, 1])
@stages
def test_input_then_weight_gradients_are_those_of_the_whole_backward(name: str, leave_out: int | None) -> None:
    module, single = _module(name), _module(name)
    for seed in range(3):  # the second and third time there is a gradient to add to
        data = _data(_num_inputs(name), seed)
        outputs = _tensors(module(*data))
        given = [None if i == leave_out else gradient for i, gradient in enumerate(_gradients(outputs))]
        before = [None if grad is None else grad.clone() for grad in _weights(module)]
        found, weight = backward_input(edges(outputs), given, data)
        assert _equal(_weights(module), before)
        assert all(tensor.grad is None for tensor in data)
        weight()
        expected = _autograd(single, again := _data(_num_inputs(name), seed), leave_out)
        assert _equal(found, expected)
        assert _equal(_weights(module), _weights(single))
        assert all(tensor.grad is None for tensor in data)
        assert len(again) == len(data)


@stages
def test_the_whole_backward_is_that_of_autograd(name: str) -> None:
    module, single = _module(name), _module(name)
    data, again = _data(_num_inputs(name)), _data(_num_inputs(name))
    outputs = _tensors(module(*data))
    found = backward(edges(outputs), _gradients(outputs), data)
    assert _equal(found, _autograd(single, again))
    assert _equal(_weights(module), _weights(single))
    assert all(tensor.grad is None for tensor in data)


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "transformer": lambda: nn.TransformerEncoderLayer(WIDTH, 2, dim_feedforward=8, dropout=0.0, batch_first=True),
    "transformer, fused attention": lambda: nn.TransformerDecoderLayer(WIDTH, 3, 8, dropout=0.0),
    "convolutions": lambda: nn.Sequential(nn.Conv1d(ROWS, 4, 3), nn.BatchNorm1d(4), nn.ReLU(True), nn.Conv1d(4, 2, 3)),
    "recurrent": lambda: nn.LSTM(WIDTH, 4, num_layers=2, batch_first=True),
    "weight normalised": lambda: parametrizations.weight_norm(nn.Linear(WIDTH, 3)),
    "orthogonal": lambda: parametrizations.orthogonal(nn.Linear(WIDTH, WIDTH)),
    "padded and grouped": lambda: nn.Sequential(nn.GroupNorm(1, ROWS), nn.ConstantPad1d(1, 0.0), nn.PReLU(ROWS)),
}


@pytest.mark.parametrize("layer", list(LAYERS))
def test_layers_of_torch(layer: str) -> None:
    torch.manual_seed(0)
    module = LAYERS[layer]()
    single = copy.deepcopy(module)
    num_inputs = 2 if isinstance(module, nn.TransformerDecoderLayer) else 1
    ours, theirs = ([torch.randn(3, ROWS, WIDTH).requires_grad_() for _ in range(num_inputs)] for _ in range(2))
    with torch.no_grad():
        for left, right in zip(ours, theirs, strict=True):
            right.copy_(left)
    outputs = [output for output in _tensors(module(*ours)) if isinstance(output, Tensor)]
    found, weight = backward_input(edges(outputs), _gradients(outputs), ours)
    assert not any(grad is not None for grad in _weights(module))
    weight()
    expected = [output for output in _tensors(single(*theirs)) if isinstance(output, Tensor)]
    torch.autograd.backward(expected, _gradients(expected))
    assert _equal(found, [tensor.grad for tensor in theirs])
    assert _equal(_weights(module), _weights(single))


def test_weights_that_lead_to_sparse_gradients() -> None:
    module = nn.Embedding(7, WIDTH, sparse=True)
    single = copy.deepcopy(module)
    numbers, gradient = torch.tensor([1, 3, 3]), torch.ones(3, WIDTH)
    found, weight = backward_input(edges([module(numbers)]), [gradient], [numbers])
    weight()
    single(numbers).backward(gradient)
    assert found == [None]
    assert module.weight.grad.is_sparse
    assert torch.equal(module.weight.grad.to_dense(), single.weight.grad.to_dense())


# -- work --------------------------------------------------------------------------------------------------------------


class Products(TorchDispatchMode):
    """Counts matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
        return func(*args, **(kwargs or {}))


def _count(call: Callable[[], Any]) -> int:
    with Products() as products:
        call()
    return products.count


def test_each_half_does_half_of_the_products() -> None:
    module = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(8)))
    data = _data(1)
    outputs = [module(*data)]
    weights: list[Callable[[], None]] = []
    assert _count(lambda: weights.append(backward_input(edges(outputs), _gradients(outputs), data)[1])) == 8
    assert _count(weights[0]) == 8


def test_between_two_uses_of_a_weight_only_the_first_product_is_repeated() -> None:
    first, between = nn.Linear(WIDTH, WIDTH), nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(8)))
    data = _data(1)
    outputs = [first(between(first(*data)))]
    weights: list[Callable[[], None]] = []
    assert _count(lambda: weights.append(backward_input(edges(outputs), _gradients(outputs), data)[1])) == 10
    assert _count(weights[0]) == 10 + 1


def test_where_no_input_learns_there_is_nothing_to_do_before_w() -> None:
    module = _module("layers")
    data = [tensor.detach() for tensor in _data(1)]
    outputs = [module(*data)]
    found: list[Any] = []
    assert _count(lambda: found.extend(backward_input(edges(outputs), _gradients(outputs), data))) == 0
    assert found[0] == [None]
    assert _count(found[1]) == 3  # two weights, and the gradient between the layers


def test_without_a_gradient_nothing_is_done() -> None:
    module = _module("two outputs")
    data = _data(1)
    found, weight = backward_input(edges(module(*data)), [None, None], data)
    weight()
    assert found == [None]
    assert not any(grad is not None for grad in _weights(module))
    assert backward(edges(module(*data)), [None, None], data) == [None]


def test_w_is_done_once() -> None:
    module = _module("layers")
    data = _data(1)
    outputs = [module(*data)]
    weight = backward_input(edges(outputs), _gradients(outputs), data)[1]
    weight()
    with pytest.raises(RuntimeError, match="twice"):
        weight()


# -- hooks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["layers", "one layer five times", "one weight by different ways"])
def test_hooks_of_weights_run_once_and_in_w(name: str) -> None:
    module, single = _module(name), _module(name)
    events: list[str] = []
    for copied in (module, single):
        for parameter in copied.parameters():
            parameter.register_hook(lambda gradient: gradient * 3)
    for path, parameter in module.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, path=path: events.append(path))
    data = _data(1)
    outputs = [module(*data)]
    _, weight = backward_input(edges(outputs), _gradients(outputs), data)
    assert not events
    weight()
    _autograd(single, _data(1))
    assert _equal(_weights(module), _weights(single))
    assert sorted(events) == sorted(path for path, found in module.named_parameters() if found.grad is not None)


def test_a_hook_that_changes_an_activations_gradient_changes_it_once() -> None:
    def halve(module: nn.Module, args: Any, output: Tensor) -> None:
        output.register_hook(lambda gradient: gradient / 2)

    module, single = _module("one layer five times"), _module("one layer five times")
    for stage in (module, single):
        assert isinstance(stage, Stage)
        stage.a.register_forward_hook(halve)
    data = _data(1)
    outputs = [module(*data)]
    found, weight = backward_input(edges(outputs), _gradients(outputs), data)
    weight()
    assert _equal(found, _autograd(single, _data(1)))
    assert _equal(_weights(module), _weights(single))


# -- memory ------------------------------------------------------------------------------------------------------------


class Kept:
    """What stands for one tensor that autograd keeps."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


@pytest.mark.parametrize("name", ["layers", "one layer twice", "a function of one's own", "in place"])
def test_activations_go_with_w_without_waiting_for_the_garbage_collector(name: str) -> None:
    module = _module(name)
    kept: weakref.WeakSet[Kept] = weakref.WeakSet()

    def keep(tensor: Tensor) -> Kept:
        kept.add(box := Kept(tensor.detach()))  # an output kept whole would own the node that keeps it
        return box

    data = _data(1)
    gc.disable()
    try:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda box: box.tensor):
            roots = edges([output := module(*data)])
        gradients = _gradients([output])
        found, weight = backward_input(roots, gradients, data)
        del roots, output, data
        assert kept
        weight()
        assert not kept
    finally:
        gc.enable()
    assert found[0] is not None
