"""Wrong: the loss of each microbatch is divided by their number, and the gradients of the stage once more."""

from tests.examples import pipeline_function


def train_step(stage, microbatches, targets, loss_fn):
    losses = pipeline_function.train_step(stage, microbatches, targets, loss_fn)
    for p in stage.parameters():
        if p.grad is not None:
            p.grad /= len(microbatches)
    return losses
