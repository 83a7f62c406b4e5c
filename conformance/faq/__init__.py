"""Checks of the answers that the cheatsheet gives to common questions."""
