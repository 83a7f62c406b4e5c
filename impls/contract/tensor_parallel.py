"""Block `tensor_parallel`: layers of which each rank has a part, and the operators between them.

The layers come in either of two forms, told apart by the parameters that they ask for. *From a whole module*: `module`
is the unsharded layer, equal on all ranks, and this rank's part is copied out of it. *From sizes*: the suite then fills
the shards itself, each with the slice that its shape asks for. Functions of `tensor` and this rank's shards are taken,
too: ``column_parallel_linear(x, weight, bias)``, ``parallel_mlp(x, w1, b1, w2, b2)``. Their weights lie as (out, in),
like torch's, or as (in, out), which is found out by trying.

Ranks see the same input and compute the same loss, and every gradient is that of the unsharded module: a whole input's
whole gradient on each rank, a shard's the slice. Sources: Shoeybi et al. 2019, Megatron-LM (1909.08053), section 3;
for `sequence_parallel` Korthikanti et al. 2022 (2205.05198), section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # names in signatures only: pytest's controller reads the tables and never needs torch
    from torch import Tensor, nn
    from torch.distributed import ProcessGroup


class TensorParallelBlock(Protocol):
    """Options that an implementation does not ask for are not tested, or found out from the shapes of its results.

    With `sequence_parallel`, what lies between the parallel regions is cut along `sequence_dim` (1, of [batch,
    sequence, width]): a region takes this rank's part of the sequence and gives that of its output. Gradients of whole
    parameters (norms, row-parallel biases) are their sums over ranks when ``backward()`` returns, or after
    ``sync_gradients()``, see `SEQUENCE_SYNCS`. N that does not divide a size is refused by an exception on all ranks,
    or handled; never silently wrong.
    """

    def ColumnParallelLinear(  # noqa: N802  (a class, usually)
        self,
        module: nn.Linear,
        rank: int,
        world_size: int,
        group: ProcessGroup | None,
        gather_output: bool,
        sequence_parallel: bool,
        sequence_dim: int,
        in_features: int,
        out_features: int,
        bias: bool | Tensor | None,
        tensor: Tensor,
        weight: Tensor,
    ) -> Any:
        """Rank r has the r-th of N parts of the *outputs*: [.., in] to [.., out/N], or [.., out] with `gather_output`.

        Its weight is (out/N, in), cut along dimension 0, and its bias (out/N).
        """

    def RowParallelLinear(  # noqa: N802
        self,
        module: nn.Linear,
        rank: int,
        world_size: int,
        group: ProcessGroup | None,
        input_is_parallel: bool,
        sequence_parallel: bool,
        sequence_dim: int,
        in_features: int,
        out_features: int,
        bias: bool | Tensor | None,
        tensor: Tensor,
        weight: Tensor,
    ) -> Any:
        """Rank r has the r-th of N parts of the *inputs*: the sum over ranks of [.., in/N] to [.., out].

        Its weight is (out, in/N), cut along dimension 1; the bias stays whole and is added once. It is given this
        rank's part [.., in/N], or the whole [.., in] where `input_is_parallel` is False or that is what it takes.
        """

    def VocabParallelEmbedding(  # noqa: N802
        self,
        module: nn.Embedding,
        rank: int,
        world_size: int,
        group: ProcessGroup | None,
        num_embeddings: int,
        embedding_dim: int,
        tensor: Tensor,
        weight: Tensor,
    ) -> Any:
        """Rank r has the r-th of N parts of the rows: whole ids [..] to whole vectors [.., width] on every rank."""

    def ParallelMLP(  # noqa: N802
        self,
        module: nn.Module,
        rank: int,
        world_size: int,
        group: ProcessGroup | None,
        sequence_parallel: bool,
        sequence_dim: int,
        hidden_size: int,
        ffn_size: int,
        activation: Callable[[Tensor], Tensor],
        tensor: Tensor,
        up_weight: Tensor,
        up_bias: Tensor | None,
        down_weight: Tensor,
        down_bias: Tensor | None,
    ) -> Any:
        """``down(activation(up(x)))``: `up` cut by columns and `down` by rows. [batch, sequence, width] to the same.

        `module` has the linear layers ``up`` and ``down`` and the function ``activation``. As a function of tensors it
        is given shards (ffn/N, hidden) of `up_weight`, (ffn/N) of `up_bias`, (hidden, ffn/N) of `down_weight`, and all
        of `down_bias`, to be added once.
        """

    def ParallelAttention(  # noqa: N802
        self,
        module: nn.Module,
        rank: int,
        world_size: int,
        group: ProcessGroup | None,
        sequence_parallel: bool,
        sequence_dim: int,
        num_heads: int,
        tensor: Tensor,
        q_weight: Tensor,
        q_bias: Tensor | None,
        k_weight: Tensor,
        k_bias: Tensor | None,
        v_weight: Tensor,
        v_bias: Tensor | None,
        out_weight: Tensor,
        out_bias: Tensor | None,
    ) -> Any:
        """Self-attention with a part of the heads on each rank. [batch, sequence, width] to the same.

        `module` has the linear layers ``q``, ``k``, ``v`` and ``out``, ``num_heads``, ``head_dim``, and ``dropout`` (an
        `nn.Dropout` on the attention probabilities, without a mask). What is dropped differs between ranks inside a
        parallel region and agrees outside, though torch's generator begins in the same state on all of them. A function
        of tensors is given the rows of its heads in q, k and v, the columns of them in `out_weight`, and all of
        `out_bias`; `num_heads` is the number of all heads.
        """

    def tensor_parallel(
        self,
        module: nn.Module,
        rank: int,
        world_size: int,
        group: ProcessGroup | None,
        plan: Mapping[str, str],
        sequence_parallel: bool,
        sequence_dim: int,
        device_mesh: Any,
    ) -> nn.Module | None:
        """Make a whole block parallel: the module to call, or None when it was done in place.

        `module` is an attention or MLP as above, or a block ``x = x + dropout(attention(norm1(x)))``, ``x = x +
        dropout(mlp(norm2(x)))``. `plan` maps names of its layers to "column" and "row". Attention divides its width by
        ``head_dim``, so that it works with any number of heads.
        """

    def copy_to_region(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """Optional, f: the identity; its gradient is summed over ranks."""

    def reduce_from_region(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """Optional, g: the sum over ranks; its gradient is passed on as it is."""

    def scatter_to_region(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """Optional: this rank's part along the last dimension; its gradient is gathered."""

    def gather_from_region(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """Optional: the parts of all ranks along the last dimension; its gradient is this rank's part."""
