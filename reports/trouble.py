"""What ends a command of ``python -m reports`` with one sentence instead of a result."""

from __future__ import annotations


class Unusable(Exception):
    """The command line or a file cannot be used; the text says what, and what to do."""
