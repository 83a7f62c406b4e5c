"""Checks of the collectives: right values, the same bits everywhere, bytes and steps of each algorithm."""
