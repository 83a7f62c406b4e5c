"""The lessons of the cheatsheet as commands that print what they observe: ``python -m lessons NAME``.

A lesson is a module with ``add_arguments(parser)`` and ``run(options) -> int``, the exit status, and a line in the
table of ``__main__``. It may use the rig and implementations, and knows nothing of checks.
"""
