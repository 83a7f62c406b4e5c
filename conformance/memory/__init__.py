"""Checks of the memory figures: bytes per parameter, measured, times published numbers of parameters."""
