"""Pytest's door in a clone: ``pytest suites`` has the plugin of the suite."""

pytest_plugins = ("poolproof.suites.plugin",)
