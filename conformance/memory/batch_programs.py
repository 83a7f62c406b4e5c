"""One update of a model with a weight for each row of the data: its gradient tells which rows had a part in it.

Imports no pytest.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformance.loop.programs import Pieces, replica
from fixtures.world.context import RankContext


def shares_in_update(ctx: RankContext, rows: list[list[int]], num_rows: int) -> Tensor:
    """The part that each row has in the gradient of one step; 0 for those that had none. [num_rows]

    ``rows`` has the numbers of this rank's rows by microbatch. The loss is the mean over this rank's rows, so that its
    gradient is 1/(rows of this rank) for each of them.
    """
    built = replica(ctx, nn.Linear(num_rows, 1, bias=False))
    data = torch.eye(num_rows)
    count = sum(map(len, rows))

    def backward(batch: list[int]) -> None:
        loss: Tensor = built(data[batch]).sum() / count
        loss.backward()  # type: ignore[no-untyped-call]

    together = rows[:-1] if isinstance(built, Pieces) or built.has_no_sync else []
    if together:
        with built.no_sync():
            for batch in together:
                backward(batch)
    for batch in rows[len(together) :]:  # the last, or a reduction for each of them
        backward(batch)
        built.finish()
    (weight,) = built.module.parameters()
    assert weight.grad is not None, "the step left no gradient"
    return weight.grad.detach().flatten().clone()
