"""The entry point of pytest for any environment: it loads the plugin in sessions that name ``poolproof.suites``.

It imports nothing of poolproof, because it is part of every session of the environment.
"""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    if any(argument.startswith("poolproof.suites") for argument in args):
        early_config.pluginmanager.import_plugin("poolproof.suites.plugin")
