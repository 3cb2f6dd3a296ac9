"""Figures of runs: tables, one conclusion, coverage, precision, and differences of two or many runs. No layout."""
