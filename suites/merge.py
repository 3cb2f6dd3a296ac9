"""The command ``merge``, which knows from the plan what a whole run owes."""

from __future__ import annotations

from poolproof.reports.commands import merge_with
from poolproof.suites.running.replanning import mandatory

merge = merge_with(mandatory)
