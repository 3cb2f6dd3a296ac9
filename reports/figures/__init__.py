"""Figures of runs: tables, one conclusion, coverage, precision, and how two or many runs differ. No layout."""
