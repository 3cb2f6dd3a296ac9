"""Histories of runs: kept in a folder, asked by SQL, drawn as pages. Optional."""
