"""Checks of the lessons' commands and of their default values."""
