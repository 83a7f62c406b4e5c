"""Blocks `schedules`, `bubbles` and `pipeline`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # names in signatures only: pytest's controller reads the tables and never needs torch
    from torch import Tensor, nn
    from torch.distributed import ProcessGroup


class SchedulesBlock(Protocol):
    """Pipeline schedules as data: for each rank the ordered list of its actions, without processes.

    `num_stages` is N, the number of ranks; `num_microbatches` is M. An action is a kind (F forward, B whole backward,
    I and W its halves: gradient of the input, gradients of the weights), a stage and a microbatch, both from 0:
    ``("F", 2, 5)`` or ``"F2.5"``; where a rank has one stage only, ``"F5"`` will do. ``"F2.5&B5.1"`` is a forward and a
    backward that overlap. One flat list of ``(cycle, stage, microbatch, phase)`` is fine as well, with one stage to a
    rank. ValueError for N and M that a schedule does not allow.
    """

    def gpipe(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """All forwards, then all backwards. Source: Huang et al. 2019, GPipe (1811.06965), section 2.3."""

    def one_f_one_b(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """1F1B: rank r has min(M, N-r-1) forwards ahead. Source: Narayanan et al. 2021 (2104.04473), section 2.2.1."""

    def interleaved_1f1b(self, num_stages: int, num_microbatches: int, num_chunks: int) -> Sequence[Any]:
        """1F1B with `num_chunks` stages on each rank, chunk * N + rank; N divides M. Source: as 1F1B, section 2.2.2."""

    def zb_h1(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """ZB-H1: rank r puts off r weight gradients. Source: Qi et al. 2023, Zero Bubble (2401.10241), section 2."""

    def zb_h2(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """ZB-H2: no idle time between a rank's first action and its last; M >= 2N-1. Source: as ZB-H1."""

    def zbv(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """ZBV: 2N stages in a V, rank r has r and 2N-1-r; M >= 2N-1. Source: as ZB-H1, section 6."""

    def dualpipe(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """DualPipe: rank r has stages r and N-1-r of N, microbatches from M/2 on enter at rank N-1.

        N and M are even, M >= 2N. Source: DeepSeek-AI 2024, DeepSeek-V3 (2412.19437), section 3.2.1.
        """

    def dualpipev(self, num_stages: int, num_microbatches: int) -> Sequence[Any]:
        """DualPipeV: 2N stages in a V, rank r has r and 2N-1-r; M >= 2N. Source: the DualPipe repository."""


class BubblesBlock(Protocol):
    """The share of the total time of a step in which ranks are idle, with a barrier at both ends.

    P = `num_stages` ranks and M = `num_microbatches`; a forward and the two halves of a backward take equally long, an
    overlapped pair as long as both of its parts, and messages no time. ValueError for P and M that are not allowed.
    """

    NUM_STAGES: int  # P when nobody says otherwise: 4
    NUM_MICROBATCHES: int  # M when nobody says otherwise: 8

    def bubble_fraction(self, num_stages: int, num_microbatches: int) -> float:
        """GPipe. Source: Huang et al. 2019, GPipe (1811.06965), section 2.3."""

    def bubble_1f1b(self, num_stages: int, num_microbatches: int) -> float:
        """1F1B. Source: Narayanan et al. 2021, Megatron-LM (2104.04473), section 2.2.1."""

    def bubble_zero_bubble(self, num_stages: int, num_microbatches: int) -> float:
        """ZB-H1; M >= P. Source: Qi et al. 2023, Zero Bubble (2401.10241), section 2."""

    def bubble_dualpipe(self, num_stages: int, num_microbatches: int) -> float:
        """DualPipe; P and M even, M >= 2P. Source: DeepSeek-AI 2024, DeepSeek-V3 (2412.19437), section 3.2.1."""

    def bubble_dualpipev(self, num_stages: int, num_microbatches: int) -> float:
        """DualPipeV, two of 2P stages on each rank; M >= 2P. Source: the DualPipe repository."""


class PipelineBlock(Protocol):
    """Pipelines that run: stages on ranks, microbatches through them. Source: Huang et al. 2019, GPipe (1811.06965)."""

    def train_step(
        self,
        stage: nn.Module | Sequence[nn.Module],
        microbatches: Sequence[Any],
        targets: Sequence[Any],
        loss_fn: Callable[[Any, Any], Tensor],
        schedule: str,
        rank: int,
        world_size: int,
        group: ProcessGroup | None,
        tied: Mapping[nn.Parameter, Sequence[int]] | None,
    ) -> Sequence[Tensor]:
        """Forward and backward of all microbatches: the losses on the rank of the last stage, nothing on the others.

        To the ``.grad`` of every parameter is added the gradient of the mean over all rows of all microbatches: scaled
        exactly once, a microbatch of twice as many rows counting twice. The optimizer is the caller's.

        `stage`: this rank's module, or a list of them in order of stage number where a rank has several. A stage is
        called with what the one before returned: a tensor, or the tensors of a tuple, of any dtypes.
        `microbatches`, `targets`: lists of M, of the same shapes on all ranks; inputs count where the first stage is,
        targets where the last one is, and elsewhere they may be anything. ``loss_fn(output, target)`` is a mean over
        the rows of a microbatch, of one element.
        `schedule`: ``1f1b`` (the usual default), ``gpipe``, ``interleaved_1f1b`` (stage = chunk * N + rank), ``zb_h1``,
        ``zb_h2``, ``zbv`` and ``dualpipev`` (2N stages, rank r has r and 2N-1-r), ``dualpipe`` (N stages, rank r has r
        and N-1-r; microbatches from M/2 on enter at rank N-1, and losses are on both end ranks, each its own).
        NotImplementedError for those that are not offered, ValueError for an M that a schedule does not allow.
        `tied`: optional; parameters of which other ranks hold a copy, each with the ranks of all copies: their
        gradients are summed over these ranks. A weight that is tied within a rank is one parameter there.

        Other forms that are understood: a function for each schedule (``train_gpipe``, ``train_1f1b``); none of its
        own ``schedule`` parameter, where it is found out whether GPipe or 1F1B runs; a class ``Pipeline(stage, rank,
        world_size, ...)`` of any of these parameters, with a method ``train_step``, ``step``, ``run``,
        ``forward_backward`` or ``train_batch``; one ``batch`` with ``num_microbatches`` in place of a list, cut into
        equal parts along its first dimension; ``num_stages``, ``stage_index``, ``is_first``, ``is_last`` on request;
        losses as a list, a stacked tensor, numbers, or one mean.
        """

    def partition(self, costs: Sequence[float], num_stages: int) -> Sequence[Any]:
        """Cut a chain of layers that cost `costs` into N stages, so that the costliest costs as little as possible.

        For each stage a slice, a range, or a list of the numbers of its layers; none is empty. ValueError for fewer
        layers than stages, and for negative costs.
        """
