"""Tests of the witnesses."""
