"""The failure modes: the suite's own fixtures, and implementations put into the situation."""
