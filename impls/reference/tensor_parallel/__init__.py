"""Tensor parallelism: every rank computes a part of each layer, and sums join the parts.

Y = f(X A) B needs no exchange in between: with A cut by columns and B by rows, rank r computes f(X A_r) B_r on its own,
and Y is the sum over ranks. So a pair of layers costs one all-reduce forward (of Y) and one backward (of X's gradient).
Source: Shoeybi et al. 2019, "Megatron-LM" (1909.08053), section 3. `regions` has the operators, `layers` the layers,
`blocks` MLP and attention, `randomness` dropout.
"""

from __future__ import annotations
