"""Hints that teach: what is regular in the wrong numbers of a broken claim, and which fault makes them so."""
