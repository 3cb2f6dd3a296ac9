"""Rows and the files beside them on disk: everything that suites write and reports read."""
