"""A package that adds a backend, its waivers, a standard and a format of case lists to poolproof."""
