"""The process of an implementation: a program that makes requested calls in shared memory.

It knows backends and calls, but no cases, expected values or reports. docs/reference/host.md describes the frames.
"""
