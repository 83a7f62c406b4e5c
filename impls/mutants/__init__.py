"""Implementations with exactly one fault each; the first line of each names it, ``BREAKS`` the claims it must break."""
