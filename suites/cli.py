"""The command line ``poolproof``: all commands, each imported when it is called."""

from __future__ import annotations

import click

from poolproof.references.optional import is_installed
from poolproof.reports.terminal.command_line import EXIT_STATUSES, CommandGroup, Late

_BEFORE, _AFTER = "poolproof.suites.commands", "poolproof.reports.commands"
_HISTORY, _VERIFY = "poolproof.reports.history.commands", "poolproof.suites.verify"

PARTS = {
    "Judge": {
        "run": Late("poolproof.suites.options:run", "Judge a plan: the session of pytest under its own name."),
        "replay": Late(f"{_BEFORE}:replay", "Judge one case again."),
        "probe": Late("poolproof.suites.probe.command:probe", "Find out how a backend computes, for its declaration."),
    },
    "Look before a run": {
        "backends": Late(f"{_BEFORE}:backends", "List the backends and whether each can run here."),
        "list": Late(f"{_BEFORE}:list_blocks", "List the cases of a plan."),
        "coverage": Late(f"{_BEFORE}:coverage", "Count the classes of factors that meet in a plan, a run or a list."),
    },
    "Look at runs": {
        "show": Late(f"{_AFTER}:show", "Print the verdicts of a run."),
        "waive": Late(f"{_AFTER}:waive", "Accept a known deviation until a day."),
        "merge": Late("poolproof.suites.merge:merge", "Make one run of its shards."),
        "compare": Late(f"{_AFTER}:compare", "Compare two runs: failures, precision and time."),
        "history": Late(f"{_HISTORY}:history", "Collect the runs of several machines, and query them."),
        "dashboard": Late(f"{_HISTORY}:dashboard", "Draw a history as pages."),
    },
    "Convince another party": {
        "package": Late("poolproof.reports.bundle.commands:package", "Put a run and its evidence into one archive."),
        "verify": Late(f"{_VERIFY}.commands:verify", "Check an archive offline, and judge it again."),
        "rerun": Late(f"{_VERIFY}.rerun:rerun", "Judge some cases of an archive again, here."),
    },
    "Develop": {
        "export": Late("poolproof.suites.cases.lists.command:export", "Write cases as a case list for another tool."),
        "score": Late("poolproof.score.command:score", "Score the suite by the defects that a plan finds."),
        "cache": Late(f"{_BEFORE}:cache", "List or clear the cache of compiled code."),
        "emulator": Late("poolproof.backends.emulator.command:emulator", "Use the emulated NPU in other programs."),
    },
}
COMMANDS = {
    name: command for commands in PARTS.values() for name, command in commands.items() if is_installed(command.place)
}
"""The commands of the installed parts of poolproof."""

_HELP = """Conformance and precision of max pooling with argmax, backward, on torch, Ascend NPUs and other backends.

Judge with run, or with pytest. Both do the same:

\b
poolproof run --backend torch-cpu -n 2
pytest --pyargs poolproof.suites --backend torch-cpu -n 2
"""


class _InParts(CommandGroup):
    """The commands by their purpose."""

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in PARTS.items():
            here = [(name, commands[name].get_short_help_str(80)) for name in commands if name in COMMANDS]
            if here:
                with formatter.section(title):
                    formatter.write_dl(here)


@click.group(
    cls=_InParts,
    commands=COMMANDS,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_STATUSES,
)
@click.version_option(package_name="poolproof")
def main() -> None:
    """Run a command of ``poolproof``."""
