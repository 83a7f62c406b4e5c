"""One stage's backward pass, whole (B) or in two halves: I, the gradients of its inputs, and W, those of its weights.

The stage before waits for I alone, so W can fill time that would be idle. Source: Qi et al. 2023, Zero Bubble
(2401.10241), section 1. The two halves are found in the graph that autograd recorded, whatever the module is:

    x ───► linear ───► relu ───► linear ───► y      I goes back along the nodes that lead to an input.
             ▲                     ▲                Of these, the **forks** also lead to weights: I notes the
             w                     w                gradient that arrives there, and W starts from it.

Autograd computes at each node only what is asked for, so I makes no weight gradient, and W no input gradient a second
time. Two exceptions: a `torch.autograd.Function` of one's own makes all its gradients both times; and between several
uses of one weight W computes again what a fork gives its input, to drop it. Tensor hooks inside a stage run in both.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge
from torch.utils.hooks import RemovableHandle

Gradients = tuple[Tensor | None, ...]


def edges(outputs: Iterable[Tensor]) -> list[GradientEdge | None]:
    """Where backward enters at each output, None for one without gradient. Unlike the outputs these hold no values."""
    return [get_gradient_edge(output) if output.requires_grad else None for output in outputs]


def backward(
    outputs: Sequence[GradientEdge | None], gradients: Sequence[Tensor | None], inputs: Sequence[Tensor]
) -> list[Tensor | None]:
    """B: adds to the ``.grad`` of every weight, and returns the gradients of the `inputs`, which are leaves.

    `gradients` are those of the outputs; None for an output that nobody used. An input that has none gets None.
    """
    roots = _roots(outputs, gradients)
    if roots:
        torch.autograd.backward([edge for edge, _ in roots], [gradient for _, gradient in roots])
    found = [tensor.grad for tensor in inputs]
    for tensor in inputs:
        tensor.grad = None
    return found


def backward_input(
    outputs: Sequence[GradientEdge | None], gradients: Sequence[Tensor | None], inputs: Sequence[Tensor]
) -> tuple[list[Tensor | None], Callable[[], None]]:
    """I: returns the gradients of the `inputs`, and W, to be called once: what `backward` adds to weights, bit for bit.

    The activations are kept until W is done.
    """
    roots = _roots(outputs, gradients)
    leaves = [tensor for tensor in inputs if tensor.requires_grad]
    if not roots or not leaves:
        return [None] * len(inputs), _Later(functools.partial(backward, outputs, gradients, ()))
    groups = _groups(roots, {get_gradient_edge(leaf).node for leaf in leaves})
    arrived: dict[Node, Gradients] = {}
    with _hooks(_note(fork, arrived) for group in groups for fork in group.forks):
        found = torch.autograd.grad(
            [edge for edge, _ in roots],
            leaves,
            [gradient for _, gradient in roots],
            retain_graph=True,
            allow_unused=True,
        )
    in_order = iter(found)
    # The roots go along because they own the graph: nodes that are Python objects do not.
    later = _Later(functools.partial(_weight_gradients, groups, roots, arrived))
    return [next(in_order) if tensor.requires_grad else None for tensor in inputs], later


Roots = list[tuple[GradientEdge, Tensor]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Group:
    """Forks that have weights in common: only together do they give the sum that is added to a weight."""

    weights: set[Node]
    forks: set[Node]  # their gradients are noted in I
    behind: set[Node]  # the nodes next to the forks on the way to an input
    tops: list[int]  # places of the roots below which there is no input

    def __or__(self, other: _Group) -> _Group:
        return _Group(
            self.weights | other.weights, self.forks | other.forks, self.behind | other.behind, self.tops + other.tops
        )


class _Later:
    """A call that happens once, after which nothing of it is held any more."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call: Callable[[], Any] | None = call

    def __call__(self) -> None:
        call, self._call = self._call, None
        if call is None:
            raise RuntimeError("W of this microbatch has been done already: the weights would get its gradients twice")
        call()


def _roots(outputs: Sequence[GradientEdge | None], gradients: Sequence[Tensor | None]) -> Roots:
    pairs = zip(outputs, gradients, strict=True)
    return [(edge, gradient) for edge, gradient in pairs if edge is not None and gradient is not None]


# -- the graph ---------------------------------------------------------------------------------------------------------


def _groups(roots: Roots, inputs: set[Node]) -> list[_Group]:
    """The forks of the graph below `roots`, together with others of the same weights."""
    to_input: set[Node] = set()
    weights: dict[Node, set[Node]] = {}  # that a node leads to, by no other node of `to_input`
    groups: list[_Group] = []
    for node, below in _from_the_leaves_up([edge.node for edge, _ in roots]).items():
        behind = to_input.intersection(below)
        if behind or node in inputs:
            to_input.add(node)
        elif hasattr(node, "variable"):  # a leaf, where gradients are added to a tensor's
            weights[node] = {node}
            continue
        weights[node] = set().union(*(weights[other] for other in below if other not in behind))
        if node in to_input and weights[node]:
            _join(groups, _Group(weights[node], {node}, behind, []))
    for place, (edge, _) in enumerate(roots):
        if edge.node not in to_input:
            _join(groups, _Group(weights[edge.node], set(), set(), [place]))
    return groups


def _join(groups: list[_Group], new: _Group) -> None:
    """Add a group, united with those that have a weight of it."""
    for group in [group for group in groups if not group.weights.isdisjoint(new.weights)]:
        groups.remove(group)
        new = group | new
    groups.append(new)


def _from_the_leaves_up(roots: list[Node]) -> dict[Node, list[Node]]:
    """All nodes from `roots` on, each with the nodes below it, to which it hands gradients, and after those."""
    done: dict[Node, list[Node]] = {}
    stack = list(roots)
    while stack:
        below = [node for node, _ in stack[-1].next_functions if node is not None]
        missing = [node for node in below if node not in done]
        if missing:
            stack.extend(missing)
        else:
            done[stack.pop()] = below
    return done


# -- gradients on their way --------------------------------------------------------------------------------------------


def _weight_gradients(groups: list[_Group], roots: Roots, arrived: dict[Node, Gradients]) -> None:
    """Add to the weights, group by group, each in the order in which the whole backward would.

    Behind a fork there may be another one of its group. That must get what arrived in I, and nothing twice: so a fork
    is given just that, whatever reaches it, and the other nodes behind a fork are given nothing.
    """
    for group in groups:
        starts = [roots[place] for place in group.tops]
        for fork in group.forks:
            came = enumerate(arrived[fork])
            starts += [(GradientEdge(fork, place), gradient) for place, gradient in came if gradient is not None]
        given = [_replace(fork, arrived[fork]) for fork in group.forks]
        nothing = [_replace(node, None) for node in group.behind - group.forks]
        with _hooks(given + nothing):
            if starts:
                torch.autograd.backward(
                    [edge for edge, _ in starts],
                    [gradient for _, gradient in starts],
                    inputs=[GradientEdge(weight, 0) for weight in group.weights],
                    retain_graph=True,
                )


def _note(node: Node, arrived: dict[Node, Gradients]) -> RemovableHandle:
    """Write down the gradients that arrive at `node`."""

    def note(gradients: Gradients) -> None:
        arrived[node] = gradients

    return node.register_prehook(note)


def _replace(node: Node, gradients: Gradients | None) -> RemovableHandle:
    """Let `gradients` arrive at `node` in place of what does; with None, nothing."""

    def replace(found: Gradients) -> Gradients:
        return (None,) * len(found) if gradients is None else gradients

    return node.register_prehook(replace)


@contextlib.contextmanager
def _hooks(handles: Iterable[RemovableHandle]) -> Iterator[None]:
    """Hooks that are there for the time of the block."""
    placed = list(handles)
    try:
        yield
    finally:
        for handle in placed:
            handle.remove()
