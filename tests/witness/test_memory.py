from __future__ import annotations

import dataclasses
import gc

import numpy as np
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from fixtures.weighing import fake_world
from fixtures.witness import memory
from fixtures.witness.living import Living, follow, peak
from fixtures.witness.memory import largest, survey, weigh

FLOAT = 4


class Tied(nn.Module):
    """An embedding of 10 words and the same matrix as output layer, with a buffer of 7 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 6)
        self.output = nn.Linear(6, 10)
        self.output.weight = self.embedding.weight
        self.register_buffer("mask", torch.ones(7))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.output(self.embedding(words))


PARAMETERS = FLOAT * (10 * 6 + 10)


def trained(optimizer_cls: type[torch.optim.Optimizer], **options: float) -> tuple[Tied, torch.optim.Optimizer]:
    module = Tied()
    optimizer = optimizer_cls(module.parameters(), **options)
    module(torch.arange(3)).sum().backward()
    optimizer.step()
    return module, optimizer


def test_tied_weights_are_counted_once() -> None:
    assert weigh("built", module=Tied()).categories == {
        "parameters": PARAMETERS,
        "gradients": 0,
        "buffers": FLOAT * 7,
    }


def test_adam_holds_two_moments_and_a_step_for_each_parameter_tensor() -> None:
    module, optimizer = trained(torch.optim.Adam, lr=0.1)
    assert weigh("step", module=module, optimizer=optimizer).categories == {
        "parameters": PARAMETERS,
        "gradients": PARAMETERS,
        "buffers": FLOAT * 7,
        "optimizer": 2 * PARAMETERS + 2 * FLOAT,
    }


def test_momentum_is_one_copy_and_plain_sgd_none() -> None:
    module, optimizer = trained(torch.optim.SGD, lr=0.1, momentum=0.9)
    assert weigh("step", module=module, optimizer=optimizer).categories["optimizer"] == PARAMETERS
    module, optimizer = trained(torch.optim.SGD, lr=0.1)
    assert weigh("step", module=module, optimizer=optimizer).categories["optimizer"] == 0


def test_the_parameters_that_an_optimizer_updates_are_not_its_own() -> None:
    _, optimizer = trained(torch.optim.SGD, lr=0.1, momentum=0.9)
    assert weigh("step", optimizer=optimizer).categories == {"optimizer": PARAMETERS}


class WithMasterCopy:
    """An optimizer that updates a double-precision copy of its own."""

    def __init__(self, module: nn.Module) -> None:
        self.master = [p.detach().double().requires_grad_() for p in module.parameters()]
        for copy in self.master:
            copy.grad = torch.zeros_like(copy)
        self.inner = torch.optim.SGD(self.master, lr=0.1)
        self.module = module


def test_a_master_copy_and_its_gradients_belong_to_the_optimizer() -> None:
    module = Tied()
    reading = weigh("built", module=module, optimizer=WithMasterCopy(module))
    assert reading.categories["parameters"] == PARAMETERS
    assert reading.categories["optimizer"] == 2 * 2 * PARAMETERS


def test_gradients_that_are_views_of_one_bucket_weigh_what_the_bucket_weighs() -> None:
    module = Tied()
    bucket = torch.zeros(100)
    start = 0
    for parameter in module.parameters():
        parameter.grad = bucket[start : start + parameter.numel()].view_as(parameter)
        start += parameter.numel()
    assert weigh("views", module=module).categories["gradients"] == FLOAT * 100


def test_a_slice_keeps_its_whole_storage_alive() -> None:
    shard = torch.zeros(1000)[:10]
    assert weigh("shard", shard=shard).categories == {"shard": FLOAT * 1000}


def test_an_attribute_like_a_distributed_tensors_hides_no_storage() -> None:
    tensor = torch.ones(100)
    tensor._local_tensor = torch.ones(1)
    assert weigh("held", held=tensor).categories == {"held": FLOAT * 100}


def test_a_released_storage_weighs_nothing() -> None:
    module = nn.Linear(8, 8, bias=False)
    module.weight.untyped_storage().resize_(0)
    assert weigh("released", module=module).categories["parameters"] == 0


@dataclasses.dataclass
class Nest:
    tensors: dict[str, list[torch.Tensor]]
    itself: Nest | None = None


def test_tensors_are_found_in_nests_that_hold_themselves() -> None:
    nest = Nest(tensors={"a": [torch.zeros(3)], "b": [torch.zeros(2, dtype=torch.float64)]})
    nest.itself = nest
    assert weigh("nest", buckets=nest).categories == {"buckets": 3 * 4 + 2 * 8}


def test_a_storage_counts_for_the_first_category_that_reaches_it() -> None:
    flat = torch.zeros(5)
    assert weigh("shared", first=flat, second=[flat[:2], torch.zeros(1)]).categories == {"first": 20, "second": 4}


def test_named_categories_take_their_part_of_a_module() -> None:
    module, _ = trained(torch.optim.SGD, lr=0.1)
    assert weigh("parts", parameters=module, gradients=module, buffers=module).categories == {
        "parameters": PARAMETERS,
        "gradients": PARAMETERS,
        "buffers": FLOAT * 7,
    }


def test_other_tensors_of_the_process_are_found() -> None:
    gc.collect()  # of the tests before this one
    without = weigh("before", others=True).categories["other"]
    hidden = [torch.zeros(1000)]
    assert weigh("after", others=True).categories["other"] - without == FLOAT * 1000
    assert hidden


class Hoard:
    """Numbers that are in no tensor, in an attribute of an object."""

    def __init__(self, kept: object) -> None:
        self.kept = {"inside": [kept]}


def _held_by(holder: object) -> list[int]:
    before = Living()
    before.look()
    return [item.num_bytes for item in survey(others=True, apart_from=before, holders=[holder])["other"]]


def test_arrays_and_storages_without_a_tensor_are_found_where_they_are_held() -> None:
    module = nn.Linear(2, 2)
    module.kept = np.zeros(100, dtype=np.float64)
    assert _held_by(module) == [800]
    assert _held_by(Hoard(np.zeros(10, dtype=np.float32)[:2])) == [40]
    storage = torch.zeros(5).untyped_storage()
    assert _held_by(Hoard(storage)) == [20]


def test_an_array_that_is_a_tensors_memory_is_not_counted_again() -> None:
    tensor = torch.zeros(9)
    assert _held_by(Hoard([tensor.numpy(), tensor.numpy()[2:], tensor.untyped_storage(), np.array(["text"])])) == []
    before = Living()
    before.look()
    new = torch.zeros(7)
    found = survey(others=True, apart_from=before, holders=[Hoard([new.numpy(), new.untyped_storage()])])["other"]
    assert [item.num_bytes for item in found] == [28]


def test_the_peak_is_the_most_that_was_alive_at_one_time() -> None:
    with peak() as block:
        first = torch.zeros(10_000)
        del first
        second = torch.zeros(30_000)
        third = torch.zeros(20_000)
    assert block.peak_bytes == FLOAT * 50_000
    assert second.numel() > third.numel()


def test_storages_that_were_there_before_are_not_other() -> None:
    there = torch.zeros(1000)
    before = Living()
    before.look()
    new = torch.zeros(10)
    (found,) = [item for item in survey(others=True, apart_from=before)["other"] if item.num_bytes]
    assert (found.num_bytes, found.dtype, found.shape) == (FLOAT * 10, torch.float32, (10,))
    assert there.numel() > new.numel()


def test_the_largest_storages_come_first_in_words() -> None:
    found = survey(kept=[torch.zeros(2, 3), torch.zeros(70, dtype=torch.bfloat16), torch.zeros(0)])["kept"]
    assert largest(found) == "140 bytes behind bfloat16[70]; 24 bytes behind float32[2, 3]"
    assert largest(found, 1) == "140 bytes behind bfloat16[70]"
    assert largest([]) == "nothing"


def test_integers_are_told_from_what_can_be_trained() -> None:
    found = survey(kept=[torch.zeros(1), torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.complex64)])
    assert [item.is_floating_point for item in found["kept"]] == [True, False, True]


def test_what_only_autograd_still_holds_is_followed() -> None:
    living = Living()
    before = living.look()
    x = torch.zeros(1000, requires_grad=True)
    weight = x * 2
    y = weight * weight
    living.look()
    del weight
    assert living.look() - before == FLOAT * 3000
    y.sum().backward()
    assert living.num_bytes - before == FLOAT * 2000  # the weight is gone; the gradient has not been seen


def test_following_keeps_nothing_alive() -> None:
    living = Living()
    before = living.look()
    kept = torch.zeros(1000)
    living.note(kept)
    assert living.has_seen(kept[:10])
    assert living.num_bytes - before == FLOAT * 1000
    del kept
    assert living.num_bytes == before


def test_released_memory_is_alive_again_when_its_storage_is_filled() -> None:
    living = Living()
    before = living.look()
    full = torch.zeros(1000)
    living.note(full)
    full.untyped_storage().resize_(0)
    assert living.num_bytes == before
    full.untyped_storage().resize_(FLOAT * 1000)
    assert living.num_bytes - before == FLOAT * 1000


def test_the_peak_between_two_looks_is_followed() -> None:
    living = Living()
    before = living.look()
    with follow(living) as block:
        x = torch.zeros(1000, requires_grad=True)
        (torch.zeros(5000) + 1).sum()
        x.mul(2).sum().backward()
    assert block.peak_bytes - before == FLOAT * (1000 + 2 * 5000)


def test_the_gradients_of_a_backward_pass_are_followed() -> None:
    x = torch.zeros(1000, requires_grad=True)
    y = (x * x).sum()
    living = Living()
    before = living.look()
    with follow(living) as block:
        y.backward()
    assert block.peak_bytes - before >= FLOAT * 1000


def test_a_shard_that_an_optimizer_updates_beside_16_bit_parameters_is_found() -> None:
    module = nn.Linear(4, 2, dtype=torch.bfloat16)
    shard = nn.Parameter(module.weight.detach().flatten()[:4].clone())
    kept = torch.zeros(4, dtype=torch.bfloat16)  # nobody updates it
    optimizers = [torch.optim.SGD([shard], lr=1.0), torch.optim.SGD(module.parameters(), lr=1.0)]
    found = memory.copies_of_shards(module)
    assert [tensor is shard for tensor in found if tensor.shape == kept.shape] == [True]
    assert not set(found) & set(module.parameters())
    assert memory.copies_of_shards(module.float()) == []
    assert len(optimizers) == 2


def test_the_least_of_several_looks_counts_for_what_is_nobodys() -> None:
    looks = iter([{"parameters": 8, "other": 5}, {"parameters": 8, "other": 2}, *({"parameters": 8, "other": 9},) * 9])
    assert memory.settled(lambda: next(looks)) == {"parameters": 8, "other": 2}


def test_a_distributed_tensor_weighs_what_this_rank_holds() -> None:
    with fake_world(2, 0):
        mesh = init_device_mesh("cpu", (2,))
        shard = distribute_tensor(torch.ones(100, 6), mesh, [Shard(0)])
        assert weigh("held", held=shard).categories == {"held": FLOAT * 50 * 6}
