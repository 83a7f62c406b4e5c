"""Claims that PyTorch breaks by design, each with the reason and the source; a check confirms that it is still so."""

from __future__ import annotations

from typing import Any

MANIFEST: dict[str, Any] = {
    "deviates": {
        "calls.all-reduce-sum": {
            "reason": "all_reduce on gloo takes a strided gradient for a dense one: wrong sums, and its neighbours in "
            "memory are overwritten. Dense gradients, as autograd makes them, are summed right.",
            "source": "torch 2.13 ProcessGroupGloo, measured; call .contiguous() first",
        },
        "calls.broadcast": {
            "reason": "broadcast on gloo takes a strided parameter for a dense one and copies the wrong elements.",
            "source": "torch 2.13 ProcessGroupGloo, measured; call .contiguous() first",
        },
    },
}
