"""Names the plug-ins of the suite, nothing else."""

pytest_plugins = ["fixtures.plugin", "conformance.plugin", "reports.plugin"]
