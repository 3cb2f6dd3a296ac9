"""A package that adds a backend and a format of case lists to poolproof."""
