"""Every way to write a cut means the same stages, and what is no cut stays as wrong as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from impls.normalise import UnusableResult
from impls.partition_forms import is_cut, layers_of

CUT = [[0, 1], [2, 3, 4]]
FORMS = {
    "slices": [slice(0, 2), slice(2, 5)],
    "open slices": [slice(None, 2), slice(2, None)],
    "ranges": [range(2), range(2, 5)],
    "lists": [[0, 1], [2, 3, 4]],
    "tuples": ((0, 1), (2, 3, 4)),
    "arrays": [np.arange(2), np.arange(2, 5)],
    "tensors": [torch.arange(2), torch.arange(2, 5)],
    "by stage": {1: [2, 3, 4], 0: [0, 1]},
    "begin and end": [(0, 2), (2, 5)],
    "boundaries": [0, 2, 5],
    "an array of boundaries": np.array([0, 2, 5]),
    "cuts": [2],
    "sizes": [2, 3],
}


@pytest.mark.parametrize("found", FORMS.values(), ids=list(FORMS))
def test_every_form_is_read_as_the_same_stages(found: Any) -> None:
    assert layers_of(found, 5, 2) == CUT
    assert is_cut(CUT, 5)


@pytest.mark.parametrize(
    ("found", "read"),
    [
        ([slice(0, 2), slice(2, 4)], [[0, 1], [2, 3]]),
        ([slice(0, 3), slice(2, 5)], [[0, 1, 2], [2, 3, 4]]),
        ([[0, 2, 4], [1, 3]], [[0, 2, 4], [1, 3]]),
        ([[2, 3, 4], [0, 1]], [[2, 3, 4], [0, 1]]),
        ([[], [0, 1, 2, 3, 4]], [[], [0, 1, 2, 3, 4]]),
        ([range(5)], [[0, 1, 2, 3, 4]]),
        ([0, 0, 5], [[], [0, 1, 2, 3, 4]]),
        ([2, 2], [[0, 1], [2, 3]]),
        ([(0, 1), (2, 4)], [[0, 1], [2, 4]]),
        ([], []),
    ],
)
def test_a_wrong_cut_is_read_as_it_is(found: Any, read: list[list[int]]) -> None:
    assert layers_of(found, 5, 2) == read
    assert not (len(read) == 2 and is_cut(read, 5))


def test_pairs_of_layers_are_not_taken_for_begin_and_end() -> None:
    assert layers_of([(0, 1), (2, 3)], 4, 2) == [[0, 1], [2, 3]]
    assert layers_of([(0, 1)], 2, 1) == [[0, 1]]
    assert layers_of([(0, 2)], 2, 1) == [[0, 1]]


@pytest.mark.parametrize("found", [None, 3, "01|234", [None, None], [0.0, 2.0, 5.0], [1, 2, 3, 4, 5]])
def test_what_names_no_layers_is_told(found: Any) -> None:
    with pytest.raises(UnusableResult, match="expected"):
        layers_of(found, 5, 2)
