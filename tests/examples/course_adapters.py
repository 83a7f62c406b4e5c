"""The adapter functions of a course, each a line around classes that lie in a module beside it."""

from course_parts import Bucketed, Individual, Sharded, StateSharding


def get_ddp(module):
    return Individual(module)


def ddp_on_after_backward(ddp_model, optimizer):
    ddp_model.wait_for_gradients()


def get_ddp_individual_parameters(module):
    return Individual(module)


def ddp_individual_parameters_on_after_backward(ddp_model, optimizer):
    ddp_model.wait_for_gradients()


def get_ddp_bucketed(module, bucket_size_mb):
    return Bucketed(module, bucket_size_mb)


def ddp_bucketed_on_after_backward(ddp_model, optimizer):
    ddp_model.wait_for_gradients()


def ddp_bucketed_on_train_batch_start(ddp_model, optimizer):
    ddp_model.begin()


def get_fsdp(module, compute_dtype=None):
    return Sharded(module)


def fsdp_on_after_backward(fsdp_model, optimizer):
    fsdp_model.wait_for_gradients()


def fsdp_gather_full_params(fsdp_model):
    return fsdp_model.gather()


def get_sharded_optimizer(params, optimizer_cls, **kwargs):
    return StateSharding(params, optimizer_cls, **kwargs)
