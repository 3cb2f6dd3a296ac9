"""Rows and what lies beside them on disk: all that suites write and reports read."""
