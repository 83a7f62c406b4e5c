"""Of the linear layers, every second one is sharded: a large part of the parameters is whole on every rank."""

from fsdp_linears import Sharded, fsdp_gather_full_params, fsdp_on_after_backward

__all__ = ["fsdp_gather_full_params", "fsdp_on_after_backward", "get_fsdp"]


def get_fsdp(module):
    return Sharded(module, every=2)
