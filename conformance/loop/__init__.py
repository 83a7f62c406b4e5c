"""Claims about the worker loop of data parallelism, and about the calls that it is made of."""
