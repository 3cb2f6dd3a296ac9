"""The command ``merge``, which derives the mandatory groups of a whole run from its plan."""

from __future__ import annotations

from poolproof.reports.commands import merge_with
from poolproof.suites.plan.selection import mandatory

merge = merge_with(mandatory)
