"""Who computes: one adapter per implementation under test, behind one protocol (`poolproof.backends.base`).

A backend knows calls, never cases, checks or reports.
"""
