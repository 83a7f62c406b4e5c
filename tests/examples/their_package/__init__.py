"""A package that asks for its own installed version, which nobody who only checks a file of it has."""

import importlib.metadata

__version__ = importlib.metadata.version("their-package-that-is-not-installed")
