"""A package that adds a backend, its waivers and a standard to poolproof."""
