"""Megatron's form: classes built from sizes, operators f and g as autograd functions, weights made by the layer."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parameter import Parameter


def _tp_size():
    return dist.get_world_size()


class _CopyToModelParallelRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_):
        return input_

    @staticmethod
    def backward(ctx, grad_output):
        grad_output = grad_output.contiguous()
        dist.all_reduce(grad_output)
        return grad_output


class _ReduceFromModelParallelRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_):
        input_ = input_.contiguous()
        dist.all_reduce(input_)
        return input_

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class _ScatterToModelParallelRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_):
        return input_.chunk(_tp_size(), dim=-1)[dist.get_rank()].contiguous()

    @staticmethod
    def backward(ctx, grad_output):
        return _gather(grad_output)


class _GatherFromModelParallelRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_):
        return _gather(input_)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.chunk(_tp_size(), dim=-1)[dist.get_rank()].contiguous()


def _gather(input_):
    parts = [torch.empty_like(input_) for _ in range(_tp_size())]
    dist.all_gather(parts, input_.contiguous())
    return torch.cat(parts, dim=-1)


copy_to_tensor_model_parallel_region = _CopyToModelParallelRegion.apply
reduce_from_tensor_model_parallel_region = _ReduceFromModelParallelRegion.apply
scatter_to_tensor_model_parallel_region = _ScatterToModelParallelRegion.apply
gather_from_tensor_model_parallel_region = _GatherFromModelParallelRegion.apply


def divide(numerator, denominator):
    assert numerator % denominator == 0, f"{numerator} is not divisible by {denominator}"
    return numerator // denominator


class ColumnParallelLinear(nn.Module):
    def __init__(self, input_size, output_size, bias=True, gather_output=True, skip_bias_add=False):
        super().__init__()
        self.gather_output = gather_output
        self.skip_bias_add = skip_bias_add
        self.weight = Parameter(torch.empty(divide(output_size, _tp_size()), input_size))
        nn.init.xavier_normal_(self.weight)
        self.bias = Parameter(torch.zeros(divide(output_size, _tp_size()))) if bias else None

    def forward(self, input_):
        input_parallel = copy_to_tensor_model_parallel_region(input_)
        output_parallel = F.linear(input_parallel, self.weight, None if self.skip_bias_add else self.bias)
        output = output_parallel
        if self.gather_output:
            output = gather_from_tensor_model_parallel_region(output_parallel)
        return output, self.bias if self.skip_bias_add else None


class RowParallelLinear(nn.Module):
    def __init__(self, input_size, output_size, bias=True, input_is_parallel=False, skip_bias_add=False):
        super().__init__()
        self.input_is_parallel = input_is_parallel
        self.skip_bias_add = skip_bias_add
        self.weight = Parameter(torch.empty(output_size, divide(input_size, _tp_size())))
        nn.init.xavier_normal_(self.weight)
        self.bias = Parameter(torch.zeros(output_size)) if bias else None

    def forward(self, input_):
        if not self.input_is_parallel:
            input_ = scatter_to_tensor_model_parallel_region(input_)
        output_parallel = F.linear(input_, self.weight)
        output_ = reduce_from_tensor_model_parallel_region(output_parallel)
        if self.skip_bias_add:
            return output_, self.bias
        return output_ + self.bias if self.bias is not None else output_, None


class VocabParallelEmbedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        per_rank = divide(num_embeddings, _tp_size())
        self.vocab_start_index = per_rank * dist.get_rank()
        self.vocab_end_index = self.vocab_start_index + per_rank
        self.weight = Parameter(torch.empty(per_rank, embedding_dim))
        nn.init.normal_(self.weight)

    def forward(self, input_):
        input_mask = (input_ < self.vocab_start_index) | (input_ >= self.vocab_end_index)
        masked_input = input_.clone() - self.vocab_start_index
        masked_input[input_mask] = 0
        output_parallel = F.embedding(masked_input, self.weight)
        output_parallel[input_mask, :] = 0.0
        return reduce_from_tensor_model_parallel_region(output_parallel)


class ParallelMLP(nn.Module):
    def __init__(self, hidden_size, ffn_hidden_size):
        super().__init__()
        self.dense_4h_to_h = RowParallelLinear(ffn_hidden_size, hidden_size, input_is_parallel=True)
        self.dense_h_to_4h = ColumnParallelLinear(hidden_size, ffn_hidden_size, gather_output=False)

    def forward(self, hidden_states):
        intermediate, _ = self.dense_h_to_4h(hidden_states)
        output, _ = self.dense_4h_to_h(F.gelu(intermediate))
        return output
