"""The command ``verify``, which draws the questions of an archive's run again as this suite does."""

from __future__ import annotations

from poolproof.reports.bundle.redraw import Redraw
from poolproof.reports.commands import verify_with
from poolproof.suites.running.replanning import drawn_again, further_again, mandatory, plan_cases

verify = verify_with(Redraw(drawn_again, mandatory, plan_cases, further_again))
