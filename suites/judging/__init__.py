"""Judging: from one case on one backend to one row, by runs, checks, findings and evidence; no plans, no pytest."""
