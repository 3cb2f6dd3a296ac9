"""Histories of runs: kept in a folder, queried by SQL, drawn as pages. Optional."""
