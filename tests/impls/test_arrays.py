"""Functions written for numpy: who they are, and that memory is shared both ways."""

from __future__ import annotations

from types import FunctionType

import numpy as np
import pytest
import torch

from impls.arrays import as_array, as_tensor, knows_arrays_only
from impls.handover import NotProvided


@pytest.mark.parametrize(("names", "only"), [({"np": np}, True), ({"np": np, "torch": torch}, False), ({}, False)])
def test_module_without_torch_knows_arrays_only(names, only):
    assert knows_arrays_only(FunctionType((lambda x: x).__code__, names)) is only


def test_array_shares_the_memory_of_the_tensor_and_gives_it_back():
    tensor = torch.arange(6.0).view(2, 3)
    array = as_array([tensor])[0]
    array += 1
    assert tensor[0, 0] == 1
    assert as_tensor(array).data_ptr() == tensor.data_ptr()
    assert as_tensor(np.float32(2)).shape == ()
    assert as_tensor([array, None])[1] is None


def test_dtype_that_numpy_lacks_is_not_provided():
    with pytest.raises(NotProvided, match=r"numpy, which has no torch\.bfloat16"):
        as_array(torch.zeros(2, dtype=torch.bfloat16))
