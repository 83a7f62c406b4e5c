"""A generator of clock cycles, each a list of (microbatch, stage): GPipe's forward passes, diagonal by diagonal."""


def clock_cycles(m, n):
    for k in range(m + n - 1):
        yield [(k - stage, stage) for stage in range(max(1 + k - m, 0), min(1 + k, n))]


def bubble_fraction(num_stages, num_microbatches):
    return (num_stages - 1) / (num_microbatches + num_stages - 1)
