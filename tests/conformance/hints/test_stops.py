"""What an exception says about the fault: the words are those that torch, gloo and Python really have."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance.hints.stops import _stops, stop_signature
from conformance.verdict import RankReport, Result, Tier, Verdict


def _told(message: str, verdict: Verdict = Verdict.CRASHES, claim: str = "loop.mean", output: str = "") -> str:
    rank = RankReport(rank=0, ending="raised", detail="", output=output)
    result = Result(
        claim=claim, case="test_it", tier=Tier.CORE, impl="mine", verdict=verdict, message=message, ranks=(rank,)
    )
    found = stop_signature(result)
    return "" if found is None else found.en


def _backward_twice() -> None:
    weight = torch.ones(2, requires_grad=True)
    loss = (weight * weight).sum()
    loss.backward()
    loss.backward()


def _overwritten() -> None:
    out = (torch.ones(2, requires_grad=True) * 2).exp()
    out.mul_(2)
    out.sum().backward()


def _loaded() -> None:
    one, two = (torch.optim.SGD([torch.nn.Parameter(torch.ones(2)) for _ in range(count)], lr=1.0) for count in (1, 2))
    one.load_state_dict(two.state_dict())


RAISES: list[tuple[str, Callable[[], object], str]] = [
    ("no parameter", lambda: torch.optim.SGD([], lr=1.0), "owns no parameter"),
    ("no gradient", lambda: torch.nn.Parameter(torch.ones(2)).grad.div_(2), "A gradient is None"),
    ("0-d chunk", lambda: torch.tensor(1.0).chunk(2), "no dimension"),
    ("0-d len", lambda: len(torch.tensor(1.0)), "no dimension"),
    ("few pieces", lambda: torch.ones(9).chunk(4)[3], "fewer pieces than ranks"),
    ("sizes", lambda: torch.ones(4).add_(torch.ones(3)), "Sizes do not fit"),
    ("view", lambda: torch.ones(5).view(4, -1), "Sizes do not fit"),
    ("strided", lambda: torch.ones(4, 4).t().view(-1), "not contiguous"),
    ("leaf", lambda: torch.ones(2, requires_grad=True).add_(1), "while autograd watches"),
    ("twice", _backward_twice, "gone through twice"),
    ("no graph", lambda: torch.ones(2).sum().backward(), "no graph to go back through"),
    ("overwritten", _overwritten, "was overwritten"),
    ("state", _loaded, "saved state is not what loading expects"),
    ("integers", lambda: torch.ones(2, dtype=torch.int64).div_(2), "Whole numbers"),
    ("kernel under a stub", lambda: _backward_twice[(1,)](), "A function is indexed"),  # type: ignore[index]
    ("nothing to join", lambda: torch.cat([]), "list of tensors to be joined is empty"),
]


@pytest.mark.parametrize(("act", "said"), [entry[1:] for entry in RAISES], ids=[entry[0] for entry in RAISES])
def test_exception_of_this_torch_is_known(act: Callable[[], object], said: str) -> None:
    with pytest.raises((RuntimeError, ValueError, TypeError, AttributeError, IndexError)) as raised:
        act()
    told = _told(f"rank 1 raised {type(raised.value).__name__} at mine.py:3: {raised.value}")
    assert said in told


def test_message_of_another_size_is_known_by_what_gloo_printed():
    printed = "what(): [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 32 vs 16. Received data size"
    assert "a tensor that one rank leaves out" in _told("rank 1 was killed by signal 6", output=printed)
    assert "another microbatch" in _told("rank 1 was killed by signal 6", output=printed, claim="pipeline.equivalence")


def test_gradient_of_a_pipeline_that_is_none_is_that_of_what_was_received():
    message = "rank 2 raised TypeError: Expected parameter `tensor` of type torch.Tensor but got <class 'NoneType'>"
    assert "requires_grad_()" in _told(message, claim="pipeline.equivalence")
    assert "requires_grad_()" not in _told(message)


@pytest.mark.parametrize("message", ["rank 0 raised ValueError: no such thing", "rank 0 raised KeyError: 'layer3'"])
def test_what_is_not_known_is_not_named(message):
    assert _told(message) == ""


def test_words_of_what_did_not_crash_say_nothing():
    assert _told("optimizer got an empty parameter list", verdict=Verdict.VIOLATED) == ""


def test_every_text_is_in_both_languages():
    assert all(text.en and text.fa for _, _, text in _stops())
