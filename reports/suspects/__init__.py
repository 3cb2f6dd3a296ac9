"""What failing cases have in common: `suspects` names how many things are wrong, and under which condition each."""

from poolproof.reports.suspects.sentences import asides, headline, kinds_of
from poolproof.reports.suspects.suspect import Suspect
from poolproof.reports.suspects.suspects import NEEDED, suspects

__all__ = ["NEEDED", "Suspect", "asides", "headline", "kinds_of", "suspects"]
