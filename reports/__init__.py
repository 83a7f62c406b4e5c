"""Verdicts and evidence as JSON and as one page; knows the verdicts and nothing of how they were reached."""
