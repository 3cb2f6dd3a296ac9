"""Rows and what is kept beside them on disk: the one door between suites, which write, and reports, which read."""
