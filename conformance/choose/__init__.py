"""Checks of what an advisor answers: which strategy for which model, devices and links."""
