"""What crosses between pytest and a rank arrives as it was sent, and nothing that arrives can do harm."""

from __future__ import annotations

import dataclasses
import json
import math
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.world import codec, outcome

DENSE_DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn,
]  # fmt: skip
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


def cross(value: object) -> object:
    return codec.decode(bytearray(codec.encode(value)))


@settings(deadline=None)
@given(PLAIN)
def test_plain_values_arrive_as_they_were_sent(value: object) -> None:
    arrived = cross(value)
    assert arrived == value
    assert type(arrived) is type(value)


@pytest.mark.parametrize("dtype", DENSE_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (3, 4)], ids=str)
def test_tensors_arrive_bit_for_bit(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = (torch.arange(math.prod(shape)).reshape(shape) % 7).to(dtype)
    arrived = cross(tensor)
    assert isinstance(arrived, torch.Tensor)
    assert (arrived.dtype, arrived.shape) == (tensor.dtype, tensor.shape)
    assert arrived.reshape(-1).view(torch.uint8).equal(tensor.reshape(-1).view(torch.uint8))


def test_a_strided_conjugated_parameter_arrives_as_a_plain_tensor() -> None:
    base = torch.arange(24).reshape(4, 6).to(torch.complex64) * (1 + 2j)
    arrived = cross(torch.nn.Parameter(base.t()[::2].conj()))
    assert isinstance(arrived, torch.Tensor)
    assert type(arrived) is torch.Tensor
    assert arrived.equal(base.t()[::2].conj().resolve_conj())


def test_special_floats_arrive() -> None:
    infinity, minus_infinity, nan, minus_zero = cross([math.inf, -math.inf, math.nan, -0.0])  # type: ignore[misc]
    assert (infinity, minus_infinity) == (math.inf, -math.inf)
    assert math.isnan(nan)
    assert math.copysign(1.0, minus_zero) == -1.0


def test_a_dtype_a_slice_and_a_tagged_looking_dict_arrive() -> None:
    value = [torch.bfloat16, slice(1, None, 2), {"~": "tensor", "n": 3}]
    assert cross(value) == value


OPERATION = outcome.Operation(
    seq=1,
    kind="all_reduce",
    group="default",
    ranks=(0, 1),
    group_seq=0,
    dtype="float32",
    shape=(2, 3),
    num_bytes=24,
    reduce_op="SUM",
    where="a.py:3",
)


def test_records_of_a_trace_arrive() -> None:
    value = [
        outcome.Operations([dataclasses.astuple(OPERATION)]),
        outcome.Mark(name="step", at_ns=5),
        outcome.MemoryReading(name="rest", categories={"parameters": 8}),
        outcome.Raised(
            type="ValueError", text="t", traceback="tb", frame=outcome.Frame(file="a.py", line=3, function="f")
        ),
    ]
    assert cross(value) == value
    assert list(cross(value)[0]) == [OPERATION]


@pytest.mark.parametrize(
    "value",
    [object(), lambda: None, {1, 2}, torch.zeros(2).to_sparse(), torch.zeros(2, device="meta"), [print]],
    ids=["object", "function", "set", "sparse", "meta", "nested"],
)
def test_other_types_are_refused_where_they_are_sent(value: object) -> None:
    with pytest.raises(codec.CannotCross, match="does not cross"):
        codec.encode(value)


def message(header: object, tail: bytes = b"") -> bytearray:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return bytearray(struct.pack("<Q", len(text)) + text + tail)


@pytest.mark.parametrize(
    "sent",
    [
        bytearray(b""),
        bytearray(b"\xff" * 8),
        message(b"not json"),
        message({"~": "code", "v": "import os"}),
        message({"~": "tensor", "d": "float32", "s": [4], "n": 16}, b"too short"),
        message({"~": "tensor", "d": "float32", "s": [3], "n": 16}, bytes(16)),
        message({"~": "tensor", "d": "float32", "s": [-1, -4], "n": 16}, bytes(16)),
        message({"~": "tensor", "d": "float32", "s": [1 << 62, 1 << 62, 0], "n": 0}),
        message({"~": "tensor", "d": "Tensor", "s": [1], "n": 4}, bytes(4)),
        message({"~": "bytes", "n": -1}),
        message({"~": "Mark", "v": ["name", "not a number", ""]}),
        message({"~": "Mark", "v": ["name"]}),
        message({"~": "operations", "v": [[]]}),
        message({"~": "operations", "v": [[0] * 16]}),
        message({"~": "operations", "v": [[1, "send", "", ["0"], 0, "", [], 0, "", 0, 0, 0, 0, 0, 0, ""]]}),
        message({"~": "dict", "v": [[[], 1]]}),
        message(b"[" * 100_000),
    ],
    ids=range(17),
)
def test_a_message_that_is_none_is_called_malformed(sent: bytearray) -> None:
    with pytest.raises(codec.Malformed):
        codec.decode(sent)


@settings(deadline=None)
@given(st.data())
def test_a_damaged_message_is_a_value_or_malformed(data: st.DataObject) -> None:
    sent = bytearray(
        codec.encode({"tensor": torch.arange(6.0), "text": "abc", "mark": outcome.Mark(name="m", at_ns=1)})
    )
    at = data.draw(st.integers(0, len(sent) - 1))
    sent[at] = data.draw(st.integers(0, 255))
    try:
        codec.decode(sent[: data.draw(st.integers(0, len(sent)))])
    except codec.Malformed:
        return
