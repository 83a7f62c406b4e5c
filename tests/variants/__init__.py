"""Correct implementations in forms that people really hand in: every check has to let them pass."""
