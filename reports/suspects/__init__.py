"""What failing cases have in common: `suspects` names how many things are wrong, and under which condition each."""

from poolproof.reports.suspects.suspects import Suspect, suspects

__all__ = ["Suspect", "suspects"]
