"""The process that an implementation lives in: a program that makes calls in shared memory when it is asked to.

It knows backends and calls, and nothing of cases, expected values or reports. docs/reference/host.md describes the
frames.
"""
