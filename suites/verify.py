"""The command ``verify``, which redraws the questions of an archive's run."""

from __future__ import annotations

from poolproof.reports.bundle.redraw import Redraw
from poolproof.reports.commands import verify_with
from poolproof.suites.plan.selection import mandatory, plan_cases, redraw, redraw_further

verify = verify_with(Redraw(redraw, mandatory, plan_cases, redraw_further))
