"""Backends: one adapter per implementation under test, behind one interface (`poolproof.backends.base`).

A backend knows calls, never cases, checks or reports.
"""
