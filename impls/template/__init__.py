"""Your implementation. Fill in what you like and leave the rest: an empty function is *not provided*, never wrong.

    pytest -n 4 --impl=NAME                        check it
    pytest --impl=NAME --claim='collectives.*'     one section of it
    python -m conformance show NAME                what is taken for what

The suite looks for each name in every file of this folder. A function gets the arguments whose names it asks for, so
drop those you do not need: ``ring_allreduce(tensor)`` over torch.distributed is as good as the form over a mesh. What
each function has to do, with shapes and sources, is in ``impls/contract/``.
"""

# If your names differ: what the suite calls it -> what you call it.
adapters: dict[str, str] = {
    # "ring_allreduce": "my_ring",
}
