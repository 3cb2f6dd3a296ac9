"""Pytest's door in a clone: the same plugins that an installed suite registers as entry points."""

pytest_plugins = ("poolproof.suites.plugin", "poolproof.reports.recorder")
